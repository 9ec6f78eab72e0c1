package book_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"pgregory.net/rapid"
)

// Where a whole Run is to leave for maintenance and only some ranks have a place, or none, or as many as a narrower
// width has, that is found out with little more work the more ranks there are: the book is held meanwhile.
func TestARelocationTakesLittle(t *testing.T) {
	for name, c := range map[string]struct {
		free    int // of ten ranks
		changes []func(*rqv1.RunSpec)
	}{
		"none":     {0, []func(*rqv1.RunSpec){ungrouped}},
		"some":     {2, []func(*rqv1.RunSpec){ungrouped}},
		"narrower": {2, []func(*rqv1.RunSpec){ungrouped, elastic(1, 1)}},
		"too wide": {0, []func(*rqv1.RunSpec){ungrouped, elastic(1, 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			small, large := relocates(t, 50, 50*c.free/10, c.changes...), relocates(t, 400, 400*c.free/10, c.changes...)
			if large > 3*small { // of 8 times as many ranks
				t.Errorf("%d allocations for 400 ranks, %d for 50", large, small)
			}
		})
	}
}

// relocates returns how much is allocated as places are looked for of a Run of which all ranks leave.
func relocates(t *testing.T, ranks, free int, changes ...func(*rqv1.RunSpec)) (allocations uint64) {
	told := false
	rapid.Check(t, func(rt *rapid.T) {
		if told {
			return
		}
		told = true
		s := newStorm(newWorld(rt))
		for i := range ranks {
			s.addNode(fmt.Sprintf("n%04d", i), fmt.Sprintf("d%d", i/20))
		}
		s.setBudget("a", "org:a", 8*ranks)
		s.submitWithSpares("run0", "org:a", 1, ranks, 8, 0, changes...)
		s.work()
		for i := range free {
			s.addNode(fmt.Sprintf("x%04d", i), fmt.Sprintf("d%d", i/20))
		}
		for i := range ranks {
			s.announce(fmt.Sprintf("n%04d", i), time.Minute, time.Hour)
		}
		s.Now = s.Now.Add(time.Minute - 2*noticePeriod)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s.Book.Assess(s.Runs["run0"].UID, s.Now)
		runtime.ReadMemStats(&after)
		allocations = after.Mallocs - before.Mallocs
	})
	return allocations
}
