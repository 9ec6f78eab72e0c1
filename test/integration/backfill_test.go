package integration

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestBackfillIsToldItsRisk starts Runs in the slice of a Reservation: the one that may still run then is told at once
// that it may be cut, and the one that has ended by then is not. The money that the Reservation is to be paid from is
// kept from another. When the Run that waits is deleted, so are the risks, and the money is free.
func TestBackfillIsToldItsRisk(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 4, 64)
	s.submit("holder", 16, inPods(8))
	s.await("holder", rqv1.RunRunning, "bound 16 GPUs")
	s.submit("wanted", 32, inPods(8))
	r := s.awaitReservation("wanted", inState(rqv1.ReservationPending))
	s.awaitRisk("holder", r.Name, "1")
	s.submit("brief", 8, inPods(8), lasts(5*time.Minute))
	s.await("brief", rqv1.RunRunning, "bound 8 GPUs")
	s.submit("filler", 8, inPods(8))
	s.await("filler", rqv1.RunRunning, "bound 8 GPUs")
	s.awaitRisk("filler", r.Name, "1")
	s.awaitEvent("Run", "filler", "Reserved")
	s.submit("worse-off", 16, inPods(8)) // brief has given 8 of the 32 back by then
	kept := s.await("worse-off", rqv1.RunPending,
		"32 of 64 GPUs in use, 24 reserved for Run "+s.namespace+"/wanted to start at")
	if f := kept.Status.Refusal; f == nil || f.Limit == nil || f.Limit.Reserved == nil || f.Limit.Reserved.Amount != 24 {
		t.Errorf("why it is refused, as data: %+v", f)
	}
	throughout(t, time.Second, "the Run that ends in time", func() error { return s.atRisk("brief", "") })
	if err := s.atRisk("filler", metav1.ConditionTrue); err != nil {
		t.Error(err)
	}
	same(t, "conflict set", []string{"filler Lottery 8 1", "holder Lottery 16 1"},
		conflicts(s.awaitReservation("wanted", inState(rqv1.ReservationPending))))

	s.removeRun("wanted")
	s.awaitReservation("wanted", inState(rqv1.ReservationCanceled))
	s.await("worse-off", rqv1.RunPending, "16 "+s.flavor+" GPUs are needed")
	s.removeRun("worse-off")
	for _, run := range []string{"holder", "filler"} {
		eventually(t, run+" is safe", func() error { return s.atRisk(run, metav1.ConditionFalse) })
		s.awaitEvent("Run", run, "Safe")
	}
	s.settled()
}

// atRisk is an error unless a Run's condition AtRisk has a status, none for an empty one, and its risks go with it.
func (s *site) atRisk(name string, status metav1.ConditionStatus) error {
	run, err := s.get(name)
	if err != nil {
		return err
	}
	got := metav1.ConditionStatus("")
	if found := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionAtRisk); found != nil {
		got = found.Status
	}
	if risks := len(run.Status.AtRisk); got != status || (risks > 0) != (status == metav1.ConditionTrue) {
		return fmt.Errorf("Run %s has the condition %q and %d risks, want %q", name, got, risks, status)
	}
	return nil
}

// TestPackingAvoidsReservedSlices starts Runs beside a Reservation: they go elsewhere while they can, unless they end
// in time.
func TestPackingAvoidsReservedSlices(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 2, 64)
	s.addNodes("d1", 3)
	s.submit("holder", 8, inPods(8), s.on("d0"))
	s.await("holder", rqv1.RunRunning, "bound 8 GPUs")
	s.submit("wanted", 16, inPods(8), s.on("d0"))
	r := s.awaitReservation("wanted", inState(rqv1.ReservationPending))
	same(t, "its nodes", []string{s.namespace + "-d0-0", s.namespace + "-d0-1"}, r.Spec.IntendedSlice.Nodes)
	in := func(run, domain string, nodes int) {
		t.Helper()
		s.await(run, rqv1.RunRunning, "bound")
		found := 0
		for node := range s.nodesOf(run) {
			if node[:2] == domain {
				found++
			}
		}
		if found != nodes {
			t.Errorf("%s is on %v, want %d nodes of %s", run, s.nodesOf(run), nodes, domain)
		}
	}
	s.submit("brief", 8, inPods(8), lasts(5*time.Minute))
	in("brief", "d0", 1)
	s.removeRun("brief")
	s.awaitGone("brief")
	s.submit("small", 8, inPods(8))
	in("small", "d1", 1)
	s.submit("large", 16, inPods(8))
	in("large", "d1", 2)
	s.submit("last", 8, inPods(8))
	in("last", "d0", 1)
	s.awaitRisk("last", r.Name, "1")
	s.settled()
}

// TestRoomThatAppearsEarly frees the room that a Run waits for long before its date: it starts, and nothing is drawn.
func TestRoomThatAppearsEarly(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 2, 64)
	s.submit("holder", 16, inPods(8))
	s.await("holder", rqv1.RunRunning, "bound 16 GPUs")
	s.submit("wanted", 16, inPods(8))
	s.awaitReservation("wanted", inState(rqv1.ReservationPending))
	s.removeRun("holder")
	s.await("wanted", rqv1.RunRunning, "bound 16 GPUs")
	r := s.awaitReservation("wanted", inState(rqv1.ReservationReleased))
	if l := r.Status.Lottery; r.Status.ActivatedAt != nil || len(r.Status.Cuts) > 0 || l == nil || l.Nonce != "" {
		t.Errorf("it was activated: %+v", r.Status)
	}
	wanted := s.await("wanted", rqv1.RunRunning, "bound 16 GPUs")
	if wanted.Status.PendingReservation != "" || wanted.Status.EarliestStart != nil {
		t.Errorf("the Run still waits for %s", wanted.Status.PendingReservation)
	}
	s.settled()
}
