package resolver_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// room needs GPUs to be free on one node.
type room struct {
	node        string
	free, needs int
}

func (r *room) Free(holds []resolver.Holding) { r.add(holds, +1) }
func (r *room) Hold(holds []resolver.Holding) { r.add(holds, -1) }
func (r *room) Fits() bool                    { return r.free >= r.needs }

func (r *room) add(holds []resolver.Holding, sign int) {
	for _, h := range holds {
		if h.Node == r.node {
			r.free += sign * h.GPUs
		}
	}
}

func yielder(name string, priority int32, age time.Duration, rest ...resolver.Holding) resolver.Yielder {
	return resolver.Yielder{Priority: priority, Started: time.Unix(10000, 0).Add(-age),
		Candidate: resolver.Candidate{Run: rqv1.NamespacedName{Namespace: "rai", Name: name}, Owner: "org:ai:rai",
			Rest: rest, Ticket: true}}
}

func on(node string, gpus int) resolver.Holding { return resolver.Holding{Node: node, GPUs: gpus} }

// Who gives GPUs to a lost rank of a Run of its owner, on node n.
func TestYield(t *testing.T) {
	elastic := yielder("elastic", 1, time.Hour, on("n", 8))
	elastic.Steps = []resolver.Step{{Width: 8, Holds: []resolver.Holding{on("n", 8)}}}
	guarded := yielder("guarded", 1, time.Hour, on("n", 8))
	guarded.Spares = []resolver.Spare{{Index: 0, Holds: []resolver.Holding{on("n", 8)}}}
	for name, c := range map[string]struct {
		needs    int
		yielders []resolver.Yielder
		cuts     []string
		none     bool
	}{
		"the lowest priority": {needs: 8, cuts: []string{"low Lottery 8"},
			yielders: []resolver.Yielder{yielder("high", 5, 0, on("n", 8)), yielder("low", 1, time.Hour, on("n", 8))}},
		"of one priority the youngest": {needs: 8, cuts: []string{"young Lottery 8"},
			yielders: []resolver.Yielder{yielder("old", 1, time.Hour, on("n", 8)), yielder("young", 1, 0, on("n", 8))}},
		"who is elsewhere stays": {needs: 8, cuts: []string{"high Lottery 8"},
			yielders: []resolver.Yielder{yielder("high", 5, 0, on("n", 8)), yielder("low", 1, 0, on("m", 8))}},
		"a step does, and nobody ends": {needs: 8, cuts: []string{"elastic Shrink 8"},
			yielders: []resolver.Yielder{elastic, yielder("other", 1, 0, on("n", 8))}},
		"a spare does": {needs: 8, cuts: []string{"guarded DropSpare 8"},
			yielders: []resolver.Yielder{guarded, yielder("other", 1, 0, on("n", 8))}},
		"a step of the lowest before a Run above it": {needs: 24, cuts: []string{"elastic Lottery 16", "high Lottery 8"},
			yielders: []resolver.Yielder{elastic, yielder("high", 5, 0, on("n", 8))}},
		"two where one alone does not do": {needs: 8, cuts: []string{"a Lottery 4", "b Lottery 4"},
			yielders: []resolver.Yielder{yielder("a", 1, 0, on("n", 4)), yielder("b", 2, 0, on("n", 4))}},
		"one that does alone, though lower ones are there": {needs: 8, cuts: []string{"b Lottery 8"},
			yielders: []resolver.Yielder{yielder("a", 1, 0, on("n", 4)), yielder("b", 2, 0, on("n", 8))}},
		"nobody where all of them would not do": {needs: 9, none: true,
			yielders: []resolver.Yielder{yielder("a", 1, 0, on("n", 8))}},
	} {
		w := &room{node: "n", needs: c.needs}
		cuts, found := resolver.Yield(w, c.yielders)
		var got []string
		for i := range cuts {
			got = append(got, said(&cuts[i]))
		}
		if diff := cmp.Diff(c.cuts, got); diff != "" || found == c.none {
			t.Errorf("%s: found %v, -want +got:\n%s", name, found, diff)
		}
		if w.free != 0 {
			t.Errorf("%s: %d GPUs were left free", name, w.free)
		}
	}
}

func said(c *rqv1.Cut) string {
	return c.Run.Name + " " + string(c.Action) + " " + strconv.Itoa(int(c.GPUs))
}
