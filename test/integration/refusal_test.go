package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestRefusalsByOtherPlugins submits Runs that other plugins of kube-scheduler keep from two domains of one node each,
// beside a Run that can start: the status says why, in a message and a reason, and nothing is held.
func TestRefusalsByOtherPlugins(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		gpus            int32
		change          func(*rqv1.Run)
		reason, message string
	}{
		"more CPU than a node": {8, func(r *rqv1.Run) {
			template(r).Spec.Containers[0].Resources.Requests = corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("1000")}
		}, "NodesRejected", "Insufficient cpu"},
		"no such claim": {8, func(r *rqv1.Run) {
			template(r).Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "absent"}}}}
		}, "NodesRejected", `persistentvolumeclaim "absent" not found`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, liveCluster(t), 2, 1, 2000000)
			s.submit("refused", c.gpus, c.change)
			run := s.await("refused", rqv1.RunPending, c.message)
			if started := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionStarted); started == nil ||
				started.Status != metav1.ConditionFalse || started.Reason != c.reason || started.Message != run.Status.Message {
				t.Errorf("condition %+v, want the reason %s", started, c.reason)
			}
			s.submit("fits", 16)
			s.await("fits", rqv1.RunRunning, "bound 16 GPUs")
			if err := s.holdsNothing("refused"); err != nil {
				t.Error(err)
			}
			s.settled()
		})
	}
}
