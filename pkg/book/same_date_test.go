package book_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Two Runs come to the same date. The older one does not wait for whom the younger one cuts then, since that depends on
// where the older one goes: else each of them would be promised the other's places in turn.
func TestTwoRunsOfOneDateDoNotWaitForEachOther(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 1)
		s.fleet("d1", 2)
		for budget, gpus := range map[string]int{"x": 8, "org": 4, "org:a": 8, "org:b": 16, "lender": 8} {
			s.setBudget(budget, rqv1.Owner(budget), gpus)
		}
		s.world.lends("lender")
		s.submit("small", "x", 1, 1, 8)
		s.submit("large", "org:b", 1, 2, 8)
		s.work()
		s.submit("run1", "org:b", 1, 1, 8)
		s.submitWithSpares("run2", "org:a", 1, 1, 8, 0, borrows("lender"))
		s.work()
		date := s.Now.Add(reservationLead)
		for range 3 {
			for run, cut := range map[string]string{"run1": "small", "run2": "large"} {
				s.cutsAlone(run, cut, date)
			}
			s.during(31 * time.Second)
			s.work()
		}
		s.during(date.Sub(s.Now))
		s.work()
		s.during(noticePeriod)
		s.work()
		s.running("run1", "although its date has come")
		s.running("run2", "although its date has come")
	})
}

// cutsAlone asserts that a Run is promised to start at a date by cutting one other.
func (s *storm) cutsAlone(run, cut string, date time.Time) {
	s.t.Helper()
	p := s.Book.Prospect(s.Runs[run].UID).Promise
	if p == nil {
		s.t.Fatalf("%s has no date\n%s", run, s.story())
	}
	var cuts []string
	for _, c := range p.Conflicts {
		cuts = append(cuts, c.Run.Name)
	}
	if diff := cmp.Diff([]string{cut}, cuts); diff != "" || !p.Cuts || !p.At.Equal(date) {
		s.t.Fatalf("%s starts at %s and cuts (-want +got):\n%s\n%s", run, p.At, diff, s.story())
	}
}

// One Run is to be paid from what frees when another Run cuts somebody, and that other one comes to lack its money, all
// but what frees when the first cuts somebody. Neither has a date then: nothing would bring about either.
func TestTwoRunsAreNotPromisedWhatFreesForEachOther(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 2)
		s.fleet("d1", 1)
		for budget, gpus := range map[string]int{"org": 8, "org:a": 16, "lender": 8} {
			s.setBudget(budget, rqv1.Owner(budget), gpus)
		}
		s.world.lends("lender")
		s.submit("small", "org", 1, 1, 8)
		s.submit("large", "org:a", 1, 2, 8)
		s.work()
		s.submitWithSpares("run1", "org:a", 2, 1, 8, 0)
		s.submitWithSpares("run2", "org:b", 1, 1, 8, 0, borrows("lender"))
		s.work()
		date := s.Now.Add(reservationLead)
		s.during(31 * time.Second)
		s.work()
		s.cutsAlone("run2", "large", date)
		s.cutsAlone("run1", "small", date.Add(1))
		s.setBudget("lender", "lender", 4)
		s.work()
		s.during(31 * time.Second)
		s.work()
		for _, run := range []string{"run1", "run2"} {
			if p := s.Book.Prospect(s.Runs[run].UID).Promise; p != nil {
				s.t.Fatalf("%s is promised %+v\n%s", run, p, s.story())
			}
		}
	})
}
