package book_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// TestStormsOfOwners lets the Runs of two owners, who have little money, wait for room that those of a third have, in
// any order. Wherever pods are placed, nobody takes what older Runs with dates are to be paid from.
func TestStormsOfOwners(t *testing.T) {
	total := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		s := newStorm(w)
		nodes := rapid.IntRange(2, 5).Draw(t, "nodes")
		s.fleet("d0", nodes)
		for _, name := range []string{"a", "b"} {
			s.setBudget(name, rqv1.Owner("org:"+name), rapid.IntRange(1, 4).Draw(t, "nodes paid for by "+name)*gpusPerNode)
		}
		s.setBudget("c", "org:c", nodes*gpusPerNode)
		for i := range nodes - rapid.IntRange(0, 1).Draw(t, "free nodes") {
			s.submit(fmt.Sprintf("c%d", i), "org:c", 1, 1, gpusPerNode)
		}
		s.work()
		s.during(time.Minute)
		for range 2 {
			s.submitAnything(t)
			s.work()
		}
		actions := s.quietActions()
		maps.DeleteFunc(actions, func(name string, _ func(*rapid.T)) bool {
			return name == "add node" || name == "bind" || name == "fault"
		})
		long := actions["long"]
		actions["long"] = func(t *rapid.T) {
			s.disturb() // who is to be told to go is not meanwhile, and may be taken for stuck
			long(t)
		}
		t.Repeat(actions)
		s.Faults.Drop(sim.Crash)
		s.calm()
		w.check()
		s.addTo(total)
	})
	t.Log(total)
}
