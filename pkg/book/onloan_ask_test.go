package book_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// A Return that has come to nothing is asked for again after a lead, also where the Run's date had come before.
func TestAReturnInVainIsNotAskedForAtOnce(t *testing.T) {
	tellStorm(t, func(s *storm) {
		lends(s)
		s.pause(true)
		s.submit("run0b", "org:b", 3, 1, 8)
		s.passes(reservationLead + time.Minute)
		s.submit("run1", "org:b", 1, 1, 8)
		s.passes(2 * reservationLead)
		run := s.Runs["run1"]
		past := rqv1.Reservation{}
		past.Namespace, past.Name, past.UID = "ns", "run1-r7", "run1-r7"
		past.Labels = map[string]string{rqv1.LabelRunUID: string(run.UID)}
		past.Spec.RunRef = rqv1.NamespacedName{Namespace: "ns", Name: "run1"}
		past.CreationTimestamp = metav1.NewTime(s.Now.Add(-reservationLead))
		past.Status.State, past.Status.Cause = rqv1.ReservationCanceled, rqv1.CanceledRoomTaken
		past.Status.EndedAt = &metav1.Time{Time: s.Now}
		s.Book.SetReservation(&past)
		s.DeleteRun("run0b")
		at := s.Now
		for range 2 {
			s.work()
			s.Book.Due(s.Now)
			s.Act()
			s.work()
			s.waits("run1", "what it asked for came to nothing just now")
			if r := s.Book.Prospect(run.UID).Reservation; r != nil && r.Status.State == rqv1.ReservationActivating {
				s.t.Fatalf("it asks again after %s: %+v", s.Now.Sub(at), r.Status)
			}
			s.during(time.Minute)
		}
		s.passes(2 * reservationLead)
		s.running("run1", "although it may ask again")
	})
}
