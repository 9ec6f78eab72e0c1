package integration

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// hangs has a pod that is cut not go: the Run that it is cut for is planned again around it, with what has been freed,
// and the Node and the Reservation tell. Others have the room that it does not take.
func hangs(s *site) {
	s.addNodes("d", 2)
	for _, team := range []string{"a", "b"} {
		s.fund(team, s.envelope("all", 64))
	}
	s.submit("stays", 16, s.by("a"), inPods(8))
	s.await("stays", rqv1.RunRunning, "bound 16 GPUs")
	s.submit("wanted", 16, s.by("b"), inPods(8))
	s.awaitReservation("wanted", inState(rqv1.ReservationPending))
	stuck := s.podsOf("stays")["stays-0"]
	edit(s, &stuck, func(pod *corev1.Pod) {
		pod.Annotations["pod-delete.stage.kwok.x-k8s.io/delay"] = "10m"
	})
	s.await("stays", rqv1.RunFailed, "cut by lottery")
	s.await("wanted", rqv1.RunPending, "1 pod of another Run is leaving")
	s.load(*s.node("d-2", "d")) // wanted has its places, and does not look for others yet
	s.await("wanted", rqv1.RunRunning, "bound 16 GPUs")
	if on := s.nodesOf("wanted"); on[strings.TrimPrefix(stuck.Spec.NodeName, s.namespace+"-")] > 0 {
		s.t.Errorf("wanted is on %v, and a pod hangs on %s", on, stuck.Spec.NodeName)
	}
	s.awaitEvent("Node", stuck.Spec.NodeName, "PodStuck")
	s.awaitReservation("wanted", func(r *rqv1.Reservation) error {
		if r.Status.State != rqv1.ReservationActivating ||
			!strings.Contains(r.Status.Reason, "stays-0 on node "+stuck.Spec.NodeName) {
			return fmt.Errorf("it is %s: %s", r.Status.State, r.Status.Reason)
		}
		return nil
	})
	if err := s.api.Delete(s.t.Context(), &stuck, client.GracePeriodSeconds(0)); err != nil {
		s.t.Fatal(err)
	}
	s.awaitReservation("wanted", inState(rqv1.ReservationReleased))
}

// leaves has a Run's turn come while the pods of one that was deleted are in their grace period: nobody is cut for it.
func leaves(s *site) {
	s.addNodes("d", 16)
	for _, team := range []string{"a", "b", "c"} {
		s.fund(team, s.envelope("all", 64))
	}
	s.submit("goes", 64, s.by("a"), inPods(8), endsAfter("9s", 30))
	s.await("goes", rqv1.RunRunning, "bound 64 GPUs")
	s.submit("stays", 64, s.by("b"), inPods(8))
	s.await("stays", rqv1.RunRunning, "bound 64 GPUs")
	before := s.versions("stays")
	s.submit("wanted", 64, s.by("c"), inPods(8))
	s.removeRun("goes") // wanted may have others cut in 3 s
	s.await("wanted", rqv1.RunRunning, "bound 64 GPUs")
	if r := s.awaitReservation("wanted", inState(rqv1.ReservationReleased)); r.Status.ActivatedAt != nil {
		s.t.Errorf("others were cut: %+v", r.Status)
	}
	same(s.t, "the Run that goes on", before, s.versions("stays"))
}

// endsAfter has a Run's pods end so long after they are told to go, and ask for so much time to.
func endsAfter(delay string, grace int64) func(*rqv1.Run) {
	return func(r *rqv1.Run) {
		endsSlowly(grace)(r)
		r.Spec.Template.Annotations["pod-delete.stage.kwok.x-k8s.io/delay"] = delay
	}
}
