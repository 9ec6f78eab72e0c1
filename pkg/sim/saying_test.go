package sim_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// TestEveryWriteSaysSomething goes through an hour of a crowd, of which most wait with dates that move: each status
// that is written differs from the one before it in something that people read. When a condition came to be so does not
// change by itself, and the time that is left follows from the date.
func TestEveryWriteSaysSomething(t *testing.T) {
	c := fleet(t, 8)
	runs, reservations := 0, 0
	c.Stored = func(next *rqv1.Run) {
		runs++
		if was := c.Runs[next.Name]; equality.Semantic.DeepEqual(readOfRun(&was.Status), readOfRun(&next.Status)) {
			t.Errorf("at %s Run %s is written again: %+v", c.Now, next.Name, next.Status)
		}
	}
	c.Reserved = func(was, next *rqv1.Reservation) {
		reservations++
		if was != nil && equality.Semantic.DeepEqual(was.Spec, next.Spec) &&
			equality.Semantic.DeepEqual(readOfReservation(&was.Status), readOfReservation(&next.Status)) {
			t.Errorf("at %s Reservation %s is written again: %+v", c.Now, next.Name, next.Status)
		}
	}
	lose := sim.Event{At: noon.Add(25 * time.Minute), Do: func(c *sim.Cluster) { c.Lose("n003") }}
	// most of them never start within the hour
	if err := c.Play(history(30, 30*time.Second), []sim.Event{lose}, noon.Add(time.Hour)); err == nil {
		t.Error("nobody waits")
	}
	if runs == 0 || reservations == 0 {
		t.Errorf("%d statuses and %d Reservations are written", runs, reservations)
	}
	t.Logf("%d statuses and %d Reservations are written", runs, reservations)
}

func readOfRun(s *rqv1.RunStatus) *rqv1.RunStatus {
	s = s.DeepCopy()
	for i := range s.Conditions {
		s.Conditions[i].LastTransitionTime, s.Conditions[i].ObservedGeneration = metav1.Time{}, 0
	}
	return s
}

func readOfReservation(s *rqv1.ReservationStatus) *rqv1.ReservationStatus {
	s = s.DeepCopy()
	s.CountdownSeconds = nil
	return s
}
