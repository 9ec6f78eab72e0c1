package book_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// losesRank has a group of others hold two of three nodes, and another Run the third, all of them for good. It loses a
// pod some time before run1 may have others cut for two nodes: the pod's place is kept for the next one.
func (s *storm) losesRank(before time.Duration) {
	s.fleet("d0", 3)
	s.setBudget("a", "org:a", 16)
	s.setBudget("b", "org:b", 16)
	s.setBudget("c", "org:c", 8)
	s.submitWithSpares("run00", "org:a", 1, 2, 8, 0, theirs)
	s.submit("small", "org:c", 1, 1, 8)
	s.work()
	s.during(time.Minute)
	s.submit("run1", "org:b", 1, 2, 8)
	s.work()
	s.during(reservationLead - before)
	s.leaves("run00", 1)
	s.work()
	s.running("run00", "although its other pod is there")
}

// startsByCutting asserts that one Run alone is cut for run1, which runs then.
func (s *storm) startsByCutting(run string) {
	s.t.Helper()
	var cut []string
	for _, c := range s.decided("run1-r0") {
		cut = append(cut, c.Run.Name)
	}
	if diff := cmp.Diff([]string{run}, cut); diff != "" {
		s.t.Fatalf("who is cut (-want +got):\n%s\n%s", diff, s.story())
	}
	for range 4 {
		s.work()
		s.during(noticePeriod)
	}
	s.running("run1", "although others have been cut for it")
}

// Who is cut gives up what is kept for its lost ranks too: nobody else is cut for as much.
func TestWhatIsKeptForALostRankIsHadByCuttingItsRun(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.losesRank(gangDeadline / 2)
		s.during(gangDeadline / 2)
		s.startsByCutting("run00")
		s.running("small", "although nothing of it is needed")
	})
}

// It is waited for, as pods are, from when others are told, however long it takes until they are.
func TestWhatIsKeptIsWaitedForOnceOthersAreTold(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.losesRank(noticePeriod)
		s.during(noticePeriod)
		s.Book.Due(s.Now)
		s.Act()
		for _, uid := range s.SortedPods() {
			s.cycle(uid)
		}
		if s.Book.Decided(s.Runs["run1"].UID) == nil {
			s.t.Fatalf("nothing is decided\n%s", s.story())
		}
		s.during(noticePeriod + overstay + time.Second)
		s.decided("run1-r0")
		s.refresh()
		if n := s.Book.Prospect(s.Runs["run1"].UID).Leaving; n != 2 {
			s.t.Fatalf("it waits for %d, want a pod and what is kept of another\n%s", n, s.story())
		}
		for range 3 {
			s.work()
			s.during(noticePeriod)
		}
		s.running("run1", "although others have been cut for it")
		if r := s.Reservations["run1-r0"]; r.Status.State != rqv1.ReservationReleased {
			s.t.Fatalf("the Reservation is %s: %s", r.Status.State, r.Status.Reason)
		}
	})
}

// Who ends gives that back too, as is foreseen.
func TestWhatIsKeptForALostRankIsGivenBackWithItsRun(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.Book.DrawsBy("None")
		s.fleet("d0", 2)
		s.setBudget("a", "org:a", 16)
		s.submitWithSpares("run00", "org:a", 1, 2, 8, 0, theirs, lasting(10*time.Minute))
		s.work()
		s.submit("run1", "org:a", 1, 2, 8)
		s.leaves("run00", 1)
		s.work()
		s.running("run00", "although its other pod is there")
		end, _ := s.Runs["run00"].EndsAt()
		p := s.Book.Prospect(s.Runs["run1"].UID).Promise
		if p == nil || p.Cuts || p.At.Sub(end) > gangDeadline {
			s.t.Fatalf("run1 is promised %+v, and run00 ends at %s\n%s", p, end, s.story())
		}
	})
}

// A Run is drawn where its own pods have ended and are still to be made anew: nothing gives back what is kept for these
// but its end.
func TestARunIsDrawnWhereItsRanksAreToComeBack(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 1)
		s.fleet("d1", 2)
		s.setBudget("a", "org:a", 24)
		s.setBudget("b", "org:b", 16)
		again := int32(1)
		s.submitWithSpares("run00", "org:a", 3, 1, 8, 0, func(spec *rqv1.RunSpec) {
			spec.Runtime = &rqv1.RunRuntime{Restarts: &rqv1.RunRestarts{Limit: &again}}
		})
		s.work()
		s.during(time.Minute)
		s.submit("run1", "org:b", 1, 2, 8)
		s.work()
		s.during(reservationLead / 2)
		for _, uid := range s.SortedPods() {
			if strings.HasPrefix(s.Pods[uid].Spec.NodeName, "d1") {
				s.EndPod(uid, corev1.PodFailed)
			}
		}
		s.refresh()
		if p := s.Book.Prospect(s.Runs["run1"].UID).Promise; p == nil || len(p.Conflicts) != 1 {
			s.t.Fatalf("run1 is promised %+v\n%s", p, s.story())
		}
	})
}

// losesGroup has a group of others' pods be gone from d1, whose Run has another in d0, just before run1 may have others
// cut for all of d1.
func (s *storm) losesGroup() {
	s.fleet("d0", 2)
	s.fleet("d1", 3)
	s.setBudget("a", "org:a", 32)
	s.setBudget("b", "org:b", 24)
	s.setBudget("c", "org:c", 8)
	s.submitWithSpares("run00", "org:a", 2, 2, 8, 0, theirs)
	s.submit("small", "org:c", 1, 1, 8)
	s.work()
	s.during(time.Minute)
	s.submit("run1", "org:b", 1, 3, 8)
	s.work()
	s.during(reservationLead - gangDeadline/2)
	for n, node := range s.boundSlots("run00") {
		if strings.HasPrefix(node, "d1") {
			s.leaves("run00", n)
		}
	}
	s.work()
	s.running("run00", "although its other group is there")
}

// Nobody is drawn for no more than what is kept where it runs nothing: that is given back by itself.
func TestNobodyIsDrawnWhereAPlaceIsKeptAlone(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.losesGroup()
		s.during(gangDeadline / 2)
		s.work()
		lapse := s.Now.Add(gangDeadline / 2)
		p := s.Book.Prospect(s.Runs["run1"].UID).Promise
		if p == nil || !p.Cuts || p.At.Sub(lapse).Abs() > 2*time.Second || len(p.Conflicts) != 1 {
			s.t.Fatalf("run1 is promised %+v, and what is kept is given up at %s\n%s", p, lapse, s.story())
		}
		s.during(p.At.Sub(s.Now))
		s.Book.Advance(s.Now) // it is given back
		s.startsByCutting("small")
		s.running("run00", "although nothing that it runs is needed")
	})
}

// Nor is anybody where what is kept would do.
func TestNobodyIsCutWhereWhatIsKeptWouldDo(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 3)
		s.setBudget("a", "org:a", 16)
		s.setBudget("b", "org:b", 8)
		s.setBudget("c", "org:c", 8)
		s.submitWithSpares("run00", "org:a", 1, 2, 8, 0, theirs)
		s.submit("small", "org:c", 1, 1, 8)
		s.work()
		s.submit("run1", "org:b", 1, 1, 8)
		s.work()
		s.during(reservationLead - gangDeadline/2 - 20*time.Second)
		s.leaves("run00", 1)
		s.work()
		lapse := s.Now.Add(gangDeadline)
		s.during(gangDeadline / 2)
		s.work()
		p := s.Book.Prospect(s.Runs["run1"].UID).Promise
		if p == nil || p.Cuts || p.At.Sub(lapse).Abs() > 2*time.Second {
			s.t.Fatalf("run1 is promised %+v, and what is kept is given up at %s\n%s", p, lapse, s.story())
		}
		s.during(gangDeadline/2 + 2*time.Second)
		s.work()
		for _, run := range []string{"run00", "small", "run1"} {
			s.running(run, "although nobody is cut")
		}
	})
}
