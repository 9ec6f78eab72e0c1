package integration

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestRefusals submits Runs that cannot start to two domains of one node each, beside a Run that can: the status says
// why, in a message and a reason, and nothing is held.
func TestRefusals(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		gpus            int32
		change          func(*rqv1.Run)
		reason, message string
	}{
		"group above any domain": {16, inGroups(16), "NeverFits", "a group needs 16"},
		"pod above any node":     {16, inPods(16), "NeverFits", "a pod needs 16"},
		"above the fleet":        {64, func(*rqv1.Run) {}, "NeverFits", "64"},
		"unknown type": {8, func(r *rqv1.Run) { r.Spec.Resources.GPUType = "A1000" },
			"UnknownGPUType", "no node has GPUs of type A1000"},
		"unknown owner": {8, func(r *rqv1.Run) { r.Spec.Owner = "org:nobody:here" },
			"NoBudget", "no Budget of owner org:nobody:here"},

		"more CPU than a node": {8, func(r *rqv1.Run) {
			template(r).Spec.Containers[0].Resources.Requests = corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("1000")}
		}, "NodesRejected", "Insufficient cpu"},
		"no such claim": {8, func(r *rqv1.Run) {
			template(r).Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "absent"}}}}
		}, "NodesRejected", `persistentvolumeclaim "absent" not found`},
		"no such node": {8, func(r *rqv1.Run) { template(r).Spec.NodeSelector = map[string]string{"disk": "fast"} },
			"InsufficientGPUs", "on nodes that these pods may not use"},
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

// TestHugeRun submits the widest Run that the API takes: it is refused before a pod of it is made, and it is looked at
// again when nodes are added.
func TestHugeRun(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 1, 2000000)
	s.submit("huge", 1000000)
	s.submit("wide", 16)
	s.await("huge", rqv1.RunPending, "at most 8 fit")
	s.await("wide", rqv1.RunPending, "at most 8 fit")
	if pods := len(s.podsOf("huge")) + len(s.podsOf("wide")); pods > 0 {
		t.Errorf("%d pods were made", pods)
	}
	s.addNodes("d1", 1)
	s.await("huge", rqv1.RunPending, "at most 16 fit")
	s.await("wide", rqv1.RunRunning, "bound 16 GPUs")
	s.settled()
}

// TestBudgetWindow has a Run wait for a window that opens in a moment, and refuses one for a window that has closed.
func TestBudgetWindow(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 1, 0)
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: time.Now().Add(d).Truncate(time.Second)} }
	budget := s.budget(s.namespace, 8)
	budget.Spec.Envelopes[0].Start, budget.Spec.Envelopes[0].End = at(-2*time.Hour), at(-time.Hour)
	s.create(budget)
	s.submit("train", 8)
	s.await("train", rqv1.RunPending, "its window closed at "+budget.Spec.Envelopes[0].End.UTC().Format(time.RFC3339))
	edit(s, budget, func(b *rqv1.Budget) { b.Spec.Envelopes[0].Start, b.Spec.Envelopes[0].End = at(time.Hour), nil })
	s.await("train", rqv1.RunPending, "its window opens at "+budget.Spec.Envelopes[0].Start.UTC().Format(time.RFC3339))
	opens := at(10 * time.Second)
	edit(s, budget, func(b *rqv1.Budget) { b.Spec.Envelopes[0].Start = opens })
	s.await("train", rqv1.RunPending, "its window opens at "+opens.UTC().Format(time.RFC3339))
	s.await("train", rqv1.RunRunning, "bound 8 GPUs")
	if lease := s.leasesOf("train")[0]; lease.Spec.Start.Time.Before(opens.Time) {
		t.Errorf("the Run started at %s, before its window opened at %s", lease.Spec.Start, opens)
	}
	s.settled()
}

// TestBudgetDeleted deletes a Budget that pays: what runs goes on, nothing new starts, and once the Budget is back its
// usage goes on too.
func TestBudgetDeleted(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 2, 2, 24)
	s.submit("running", 16)
	s.await("running", rqv1.RunRunning, "bound 16 GPUs")
	s.delete(s.budget(s.namespace, 24))
	s.submit("new", 8)
	s.await("new", rqv1.RunPending, "no Budget of owner")
	if err := is(s.await("running", rqv1.RunRunning, "bound 16 GPUs"), rqv1.RunRunning, ""); err != nil {
		t.Error(err)
	}
	s.settled()
	s.create(s.budget(s.namespace, 16))
	s.await("new", rqv1.RunPending, "16 of 16 GPUs in use")
	s.settled()
	edit(s, s.budget(s.namespace, 0), func(b *rqv1.Budget) { b.Spec.Envelopes[0].Concurrency = 24 })
	s.await("new", rqv1.RunRunning, "bound 8 GPUs")
	s.settled()
}
