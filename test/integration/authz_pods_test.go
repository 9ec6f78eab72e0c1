package integration

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// runLabels are the labels of a pod of a Run.
var runLabels = map[string]string{rqv1.LabelRun: "train", rqv1.LabelIndex: "0"}

func somePod(namespace, name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: corev1.PodSpec{SchedulerName: rqv1.SchedulerName,
			Containers: []corev1.Container{{Name: "a", Image: "b"}}},
	}
}

// podNamespace makes a namespace in which pods can be created and the policy of their labels is in force.
func podNamespace(t *testing.T, ns string) {
	t.Helper()
	makeNamespace(t, ns)
	eventually(t, "the namespace's service account", func() error {
		return actAs(t, mallory).Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "default"}, &corev1.ServiceAccount{})
	})
	policyEnforced(t, "jobtree-pods", func() error {
		return actAs(t, mallory).Create(t.Context(), somePod(ns, "probe", runLabels), client.DryRunAll)
	})
}

const labelsAreOurs = "labels under rq.davidlangworthy.io/ mark the pods of a Run: only the scheduler"

// A pod that says that it is a Run's is created by nobody but the scheduler, however it comes to say so.
func TestPodsOfRunsCannotBeForged(t *testing.T) {
	const ns = "authz-forge"
	podNamespace(t, ns)
	by := actAs(t, mallory)
	refused(t, "create", by.Create(t.Context(), somePod(ns, "train-0", runLabels)), labelsAreOurs)
	plain := somePod(ns, "train-0", nil)
	if err := by.Create(t.Context(), plain); err != nil {
		t.Fatal(err)
	}
	labelled := plain.DeepCopy()
	labelled.Labels = runLabels
	refused(t, "update", by.Update(t.Context(), labelled.DeepCopy()), labelsAreOurs)
	refused(t, "patch", by.Patch(t.Context(), labelled.DeepCopy(), client.MergeFrom(plain)), labelsAreOurs)
	refused(t, "apply", by.Patch(t.Context(), somePod(ns, "train-0", nil),
		client.RawPatch(types.ApplyPatchType, []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"`+rqv1.LabelRun+
			`":"train"}}}`)),
		client.FieldOwner("mallory"), client.ForceOwnership), labelsAreOurs)
	refused(t, "status", by.Status().Update(t.Context(), labelled.DeepCopy()), labelsAreOurs)
	unchanged(t, plain)
	forgeByDeployment(t, ns, by)
}

// forgeByDeployment has the ReplicaSet's controller create the pods.
func forgeByDeployment(t *testing.T, ns string, by client.Client) {
	template := somePod(ns, "", map[string]string{"app": "forged", rqv1.LabelRun: "train", rqv1.LabelIndex: "0"})
	err := by.Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "forged"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "forged"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: template.Labels}, Spec: template.Spec},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the ReplicaSet's failure", func() error {
		var sets appsv1.ReplicaSetList
		if err := by.List(t.Context(), &sets, client.InNamespace(ns)); err != nil {
			return err
		}
		for _, set := range sets.Items {
			for _, condition := range set.Status.Conditions {
				if condition.Type == appsv1.ReplicaSetReplicaFailure && strings.Contains(condition.Message, labelsAreOurs) {
					return nil
				}
			}
		}
		return errors.New("no ReplicaSet says that its pods are refused")
	})
	var pods corev1.PodList
	if err := by.List(t.Context(), &pods, client.InNamespace(ns), client.HasLabels{rqv1.LabelRun}); err != nil ||
		len(pods.Items) > 0 {
		t.Errorf("%d forged pods, %v", len(pods.Items), err)
	}
}

// Kubernetes and people do with a Run's pods what they do with any other.
func TestPodsOfRunsAreServedAsOthersAre(t *testing.T) {
	const ns = "authz-benign"
	podNamespace(t, ns)
	pod := somePod(ns, "train-0", runLabels)
	if err := actAs(t, scheduler).Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	with := func(name string) client.Client {
		return actAs(t, rest.ImpersonationConfig{UserName: name, Groups: mallory.Groups})
	}
	patch := func(text string) client.Patch { return client.RawPatch(types.StrategicMergePatchType, []byte(text)) }
	bind := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: pod.Name},
		Target: corev1.ObjectReference{Kind: "Node", Name: "n1"}}
	debug := pod.DeepCopy()
	debug.Spec.EphemeralContainers = []corev1.EphemeralContainer{
		{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: "debug", Image: "busybox", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			ImagePullPolicy: corev1.PullAlways,
		}}}
	for _, step := range []struct {
		what string
		err  error
	}{
		{"bind", actAs(t, schedulerAccount).SubResource("binding").Create(t.Context(), pod.DeepCopy(), bind)},
		{"kubelet", with("system:node:n1").Status().Patch(t.Context(), pod.DeepCopy(),
			patch(`{"status":{"phase":"Running","podIP":"10.0.0.1"}}`))},
		{"taint eviction", with("system:serviceaccount:kube-system:node-controller").Status().Patch(t.Context(),
			pod.DeepCopy(),
			patch(`{"status":{"conditions":[{"type":"DisruptionTarget","status":"True","reason":"DeletionByTaintManager"}]}}`))},
		{"finalizer", with("controller").Patch(t.Context(), pod.DeepCopy(),
			patch(`{"metadata":{"finalizers":["example.com/mine"]}}`))},
		{"its removal", with("system:serviceaccount:kube-system:generic-garbage-collector").Patch(t.Context(), pod.DeepCopy(),
			patch(`{"metadata":{"finalizers":null}}`))},
		{"annotation and label",
			with("ann").Patch(t.Context(), pod.DeepCopy(),
				patch(`{"metadata":{"annotations":{"note":"seen"},"labels":{"team":"rai"}}}`))},
		{"kubectl debug", with("ann").SubResource("ephemeralcontainers").Patch(t.Context(), debug,
			client.StrategicMergeFrom(pod))},
		{"delete", with("ann").Delete(t.Context(), pod.DeepCopy(), client.GracePeriodSeconds(0))},
	} {
		if step.err != nil {
			t.Errorf("%s: %v", step.what, step.err)
		}
	}
}
