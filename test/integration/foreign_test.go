package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// foreignPod is a pod for the nodes of the site that no Run makes, with what it asks for.
func (s *site) foreignPod(name string, asks corev1.ResourceList) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec: corev1.PodSpec{
			SchedulerName: rqv1.SchedulerName, NodeSelector: map[string]string{"gpu.flavor": s.flavor},
			Containers: []corev1.Container{
				{Name: "main", Image: "registry.k8s.io/pause:3.10.1", Resources: corev1.ResourceRequirements{Limits: asks}}},
		},
	}
}

// scheduled returns where a pod is, or what its PodScheduled condition says.
func (s *site) scheduled(name string) (node, why string, err error) {
	pod := &corev1.Pod{}
	if err := s.api.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, pod); err != nil {
		return "", "", err
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			why = c.Reason + ": " + c.Message
		}
	}
	return pod.Spec.NodeName, why, nil
}

// A Run without a template, and its spares, start where the strictest pod security standard is enforced.
func TestRunsWithoutATemplateStartInARestrictedNamespace(t *testing.T) {
	s := newSite(t, liveCluster(t), 1, 2, 16)
	namespace := &corev1.Namespace{}
	if err := s.api.Get(t.Context(), client.ObjectKey{Name: s.namespace}, namespace); err != nil {
		t.Fatal(err)
	}
	namespace.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
	if err := s.api.Update(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	s.submit("train", 8, inPods(8), func(r *rqv1.Run) { spares := int32(8); r.Spec.Spares = &spares })
	s.await("train", rqv1.RunRunning, "bound 8 GPUs")
}

// A pod that no Run made gets no GPU, although all of them are free, and is told why. One that asks for none is placed.
func TestGPUsWithoutAPayerAreNotGiven(t *testing.T) {
	s := newSite(t, liveCluster(t), 1, 1, 8)
	s.create(s.foreignPod("greedy", corev1.ResourceList{gpuResource: resource.MustParse("1")}))
	s.create(s.foreignPod("modest", corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}))
	eventually(t, "the pods", func() error {
		node, why, err := s.scheduled("greedy")
		if err != nil || node != "" || !strings.HasPrefix(why, "NotServed: ") ||
			!strings.Contains(why, "no owner is named to pay") {
			return errors.Join(err, fmt.Errorf("the pod that asks for a GPU is on %q: %s", node, why))
		}
		if node, why, err = s.scheduled("modest"); err != nil || node == "" {
			return errors.Join(err, fmt.Errorf("the pod that asks for none is not placed: %s", why))
		}
		events := &corev1.EventList{}
		if err := s.api.List(t.Context(), events, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.InvolvedObject.Name == "greedy" && strings.Contains(e.Message, "no owner is named to pay") {
				return nil
			}
		}
		return errors.New("no event tells it")
	})
	s.submit("train", 8)
	s.await("train", rqv1.RunRunning, "")
	if node, _, err := s.scheduled("greedy"); err != nil || node != "" {
		t.Errorf("the pod that asks for a GPU is on %q, %v", node, err)
	}
}

// What a spare's rank would ask for beside GPUs is kept from other pods while the spare stands by, and free when it is
// gone.
func TestASparesCPUIsKeptFromOtherPods(t *testing.T) {
	s := newSite(t, liveCluster(t), 1, 2, 16)
	s.submit("train", 8, inPods(8), func(r *rqv1.Run) {
		spares := int32(8)
		r.Spec.Spares = &spares
		template(r).Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("40")}
	})
	s.await("train", rqv1.RunRunning, "bound 8 GPUs")
	s.create(s.foreignPod("small", corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20")}))
	s.create(s.foreignPod("large", corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("30")}))
	eventually(t, "the pods", func() error {
		if node, why, err := s.scheduled("small"); err != nil || node == "" {
			return errors.Join(err, fmt.Errorf("the small pod is not placed: %s", why))
		}
		node, why, err := s.scheduled("large")
		if held := "spares of Run " + s.namespace + "/train"; err != nil || node != "" || !strings.Contains(why, held) {
			return errors.Join(err, fmt.Errorf("the large pod is on %q: %s", node, why))
		}
		return nil
	})
	s.removeRun("train")
	eventually(t, "the large pod is to be placed", func() error {
		node, why, err := s.scheduled("large")
		if err == nil && node == "" {
			err = errors.New(why)
		}
		return err
	})
}
