package book_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/davidlangworthy/jobtree/pkg/published"
)

// The summary of the fleet says what is free, promised and out of service, and follows what happens.
func TestTheFleetInNumbers(t *testing.T) {
	tellStorm(t, func(s *storm) {
		is := func(what string, want ...published.Domain) {
			s.t.Helper()
			got := s.Book.FleetSummary()
			for i := range got.Domains {
				got.Domains[i].Values = got.Domains[i].Values[len(got.Levels)-1:]
			}
			if diff := cmp.Diff(want, got.Domains); diff != "" {
				s.t.Fatalf("%s (-want +got):\n%s", what, diff)
			}
		}
		s.fleet("d0", 2)
		s.setBudget("a", "org:a", 64)
		d0 := published.Domain{Values: []string{"d0"}, GPUType: flavor, GPUs: 16, Free: 16, Nodes: 2,
			NodesByGPUs: map[int]int{8: 2}}
		is("nothing runs", d0)
		s.submit("run0", "org:a", 1, 2, 8)
		s.work()
		d0.Free = 0
		is("a Run has all of it", d0)
		s.submit("run1", "org:a", 1, 1, 8)
		s.work()
		s.during(time.Second)
		d0.Promised = 8
		is("another waits and has a date", d0)
		s.cordons("d0-n00", true)
		d0.OutOfService = 1
		is("a node is cordoned", d0)
		s.DeleteRun("run1")
		s.work()
		d0.Promised = 0
		is("who waited is gone", d0)
	})
}
