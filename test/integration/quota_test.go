package integration

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// limitPods has there be at most so many pods in the namespace.
func (s *site) limitPods(most int64) *corev1.ResourceQuota {
	s.t.Helper()
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "pods"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			corev1.ResourcePods: *resource.NewQuantity(most, resource.DecimalSI)}}}
	s.create(q)
	eventually(s.t, "the quota is to count", func() error {
		err := s.api.Get(s.t.Context(), client.ObjectKeyFromObject(q), q)
		if err == nil && len(q.Status.Hard) == 0 {
			err = errors.New("it has no status")
		}
		return err
	})
	return q
}

// quotaFirst has the turn of a Run come of whose pods the namespace's quota takes half: nobody is cut for it, it is
// told why, and its pods go again. When the quota takes them all, it starts.
func quotaFirst(s *site) {
	s.addNodes("d", 2)
	for _, team := range []string{"has", "wants"} {
		s.fund(team, s.envelope("all", 16))
	}
	s.submit("has", 16, s.by("has"), inPods(8), checkpoint(time.Hour))
	s.await("has", rqv1.RunRunning, "bound 16 GPUs")
	quota := s.limitPods(4)
	s.submit("wants", 16, s.by("wants"), inPods(4), endsSlowly(0))
	s.await("wants", rqv1.RunPending, "exceeded quota: pods")
	eventually(s.t, "no half gang is to be left", func() error {
		if n := len(s.podsOf("wants")); n > 1 {
			return fmt.Errorf("it has %d pods", n)
		}
		return nil
	})
	if run, err := s.get("wants"); err != nil || run.Status.Refusal == nil ||
		run.Status.Refusal.Reason != "NotCreated" {
		s.t.Errorf("the refusal is %+v (%v)", run.Status.Refusal, err)
	}
	throughout(s.t, calm, "nobody is cut", func() error {
		if run, err := s.get("has"); err != nil || run.Status.Phase != rqv1.RunRunning {
			return fmt.Errorf("it is %s (%w)", run.Status.Phase, err)
		}
		return nil
	})
	same(s.t, "how has ended", map[rqv1.ClosureReason]int{"": 2}, s.closures("has"))
	edit(s, quota, func(q *corev1.ResourceQuota) { q.Spec.Hard[corev1.ResourcePods] = resource.MustParse("100") })
	s.await("wants", rqv1.RunRunning, "bound 16 GPUs")
	s.await("has", rqv1.RunPending, "")
}

// TestARunningRunHasWhatAQuotaLeaves has a quota shrink to what a Run that runs has, which then loses a pod: the leader
// of one that waits goes for it, and comes again once there is quota.
func TestARunningRunHasWhatAQuotaLeaves(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 2, 100)
	has := func(run string, pods int) {
		t.Helper()
		eventually(t, fmt.Sprintf("%s is to have %d pods", run, pods), func() error {
			if all := s.podsOf(run); len(all) != pods {
				return fmt.Errorf("it has %d", len(all))
			}
			return nil
		})
	}
	s.submit("runs", 16, inPods(8))
	s.await("runs", rqv1.RunRunning, "bound 16 GPUs")
	s.submit("waits", 16, inPods(8))
	has("waits", 1)
	quota := s.limitPods(2)
	if err := s.api.Delete(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "runs-1"}}); err != nil {
		t.Fatal(err)
	}
	has("waits", 0)
	has("runs", 2)
	s.await("runs", rqv1.RunRunning, "bound 16 GPUs")
	edit(s, quota, func(q *corev1.ResourceQuota) { q.Spec.Hard[corev1.ResourcePods] = resource.MustParse("100") })
	has("waits", 1)
}
