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
