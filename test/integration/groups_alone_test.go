package integration

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestADeploymentsPodKeepsItsPlace: somebody deletes the pod of a Deployment of one, whose Run has a spare. The next
// pod goes on in the same Run and on its node, although another Run waits for GPUs, and when that node is lost the
// spare takes its place.
func TestADeploymentsPodKeepsItsPlace(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 2, 64)
	s.spends()
	app := map[string]string{"app": "serve"}
	template := s.template(8)
	template.Labels = app
	template.Spec.RestartPolicy = "" // Always, as Deployments want it
	template.Annotations[rqv1.AnnotationSpares] = "8"
	serve := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "serve"},
		Spec: appsv1.DeploymentSpec{Replicas: ptr.To(int32(1)), Template: template,
			Selector: &metav1.LabelSelector{MatchLabels: app}}}
	s.create(serve)
	run := &rqv1.Run{}
	eventually(t, "the Deployment's Run", func() error {
		var runs rqv1.RunList
		if err := s.api.List(t.Context(), &runs, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		if len(runs.Items) != 1 || runs.Items[0].Status.Phase != rqv1.RunRunning {
			return fmt.Errorf("the Runs are %v", runs.Items)
		}
		*run = runs.Items[0]
		return nil
	})
	s.submit("next", 8)
	s.await("next", rqv1.RunPending, "")
	served := func(other string) (name, node string) {
		eventually(t, "the Deployment's pod", func() error {
			for _, pod := range s.podsOf(run.Name) {
				if pod.Name != other && pod.Labels["app"] == "serve" && pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil {
					name, node = pod.Name, pod.Spec.NodeName
					return nil
				}
			}
			return fmt.Errorf("Run %s has no pod that serves", run.Name)
		})
		return name, node
	}
	first, node := served("")
	s.delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: first}})
	second, where := served(first)
	if where != node {
		t.Errorf("pod %s is on %s, and the one before it was on %s", second, where, node)
	}
	s.strike(node)
	if _, where := served(second); where == node {
		t.Errorf("the next is on node %s, which is lost", node)
	}
	same := &rqv1.Run{}
	if err := s.api.Get(t.Context(), client.ObjectKeyFromObject(run), same); err != nil || same.UID != run.UID {
		t.Errorf("Run %s is another by now: %v", run.Name, err)
	}
	s.await("next", rqv1.RunPending, "")
	s.delete(serve)
	s.await("next", rqv1.RunRunning, "bound 8 GPUs")
}
