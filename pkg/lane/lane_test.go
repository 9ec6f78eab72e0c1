package lane

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestWorkByWhatItFrees says for each change what is to be done.
func TestWorkByWhatItFrees(t *testing.T) {
	deleted := metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}
	pod := func(node string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
	}
	run := func(phase rqv1.RunPhase) *rqv1.Run {
		return &rqv1.Run{Spec: rqv1.RunSpec{Resources: rqv1.RunResources{TotalGPUs: 8}}, Status: rqv1.RunStatus{Phase: phase,
			Width: &rqv1.RunWidth{Granted: 8}}}
	}
	narrower, gone := run(rqv1.RunRunning), run(rqv1.RunPending)
	narrower.Status.Width.Granted = 16
	shorter := run(rqv1.RunRunning)
	shorter.Generation, shorter.Status.ObservedGeneration = 2, 1
	gone.ObjectMeta = deleted
	reservation := func(state rqv1.ReservationState) *rqv1.Reservation {
		return &rqv1.Reservation{Status: rqv1.ReservationStatus{State: state}}
	}
	for what, c := range map[string]struct{ got, want Work }{
		"a pod is made":                    {OfPod(pod("", ""), false), Begin},
		"a pod is bound":                   {OfPod(pod("n", corev1.PodPending), false), Bind},
		"a pod runs":                       {OfPod(pod("n", corev1.PodRunning), false), Bind},
		"a pod has ended well":             {OfPod(pod("n", corev1.PodSucceeded), false), End},
		"a pod has failed":                 {OfPod(pod("n", corev1.PodFailed), false), End},
		"a pod is told to go":              {OfPod(&corev1.Pod{ObjectMeta: deleted}, false), End},
		"a pod is gone":                    {OfPod(pod("n", corev1.PodRunning), true), End},
		"a Lease is opened":                {OfLease(false), Bind},
		"a Lease is closed":                {OfLease(true), End},
		"a Run is submitted":               {OfRun(run(""), false), Begin},
		"a Run waits":                      {OfRun(run(rqv1.RunPending), false), Begin},
		"a Run runs":                       {OfRun(run(rqv1.RunRunning), false), Bind},
		"a Run desires less":               {OfRun(narrower, false), End},
		"a Run is to end sooner":           {OfRun(shorter, false), End},
		"a Run has failed":                 {OfRun(run(rqv1.RunFailed), false), End},
		"a Run is being deleted":           {OfRun(gone, false), End},
		"a Run is gone":                    {OfRun(run(rqv1.RunPending), true), End},
		"a Reservation waits":              {OfReservation(reservation(rqv1.ReservationPending), false), Date},
		"the turn of a Reservation is now": {OfReservation(reservation(rqv1.ReservationActivating), false), Cut},
		"a Reservation is over":            {OfReservation(reservation(rqv1.ReservationReleased), false), Date},
		"a Reservation is gone":            {OfReservation(reservation(rqv1.ReservationActivating), true), Date},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", what, c.got, c.want)
		}
	}
}

// TestLanes: what frees goes first where it shares its lane, and every lane is worked on.
func TestLanes(t *testing.T) {
	var order []Lane
	for _, w := range []Work{Cut, End, Bind, Begin, Date, Expire} {
		order = append(order, w.Lane())
	}
	if want := []Lane{Frees, Frees, Binds, Begins, Dates, Expiries}; !slices.Equal(order, want) {
		t.Errorf("lanes %v, want %v", order, want)
	}
	if Cut <= End || End <= Bind || Bind <= Begin || Begin <= Date || Date <= Expire {
		t.Error("what frees more does not come first")
	}
	for _, l := range All {
		if l.Workers() < 2 {
			t.Errorf("%d work on %s: one namespace can have all of them", l.Workers(), l)
		}
	}
}
