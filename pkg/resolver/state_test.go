package resolver

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// state is nodes and candidates that hold some of their GPUs.
type state struct {
	size       map[string]int // GPUs of each node
	free       map[string]int
	candidates []Candidate
}

// drawState makes small states in which every way to cut occurs.
func drawState(t *rapid.T, nodes, candidates int) *state {
	s := &state{size: map[string]int{}, free: map[string]int{}}
	for n := range rapid.IntRange(1, nodes).Draw(t, "nodes") {
		name := fmt.Sprint("n", n)
		s.size[name] = rapid.SampledFrom([]int{2, 4, 4, 8}).Draw(t, "size")
		s.free[name] = s.size[name]
	}
	for i := range rapid.IntRange(0, candidates).Draw(t, "candidates") {
		s.drawTenant(t, i)
	}
	return s
}

func (s *state) drawTenant(t *rapid.T, i int) {
	own := run(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "owner"), fmt.Sprint("r", i))
	own.Ticket = rapid.IntRange(0, 4).Draw(t, "ticket") > 0
	own.Rest = s.hold(t)
	if p := rapid.Int32Range(-1, 2).Draw(t, "priority"); rapid.IntRange(0, 4).Draw(t, "has a class") > 0 {
		own.Priority = &p
	}
	own.Started = time.Unix(int64(rapid.IntRange(0, 3).Draw(t, "started")), 0)
	for n := range rapid.IntRange(0, 2).Draw(t, "spares") {
		own.Spares = append(own.Spares, Spare{Index: n, Holds: s.hold(t)})
	}
	steps := rapid.IntRange(0, 3).Draw(t, "steps")
	for n := range steps {
		borrowed := rapid.IntRange(0, 3).Draw(t, "borrowed") == 0
		own.Steps = append(own.Steps, Step{Width: 4 * (steps - n), Borrowed: borrowed, Holds: s.hold(t)})
	}
	s.candidates = append(s.candidates, own)
}

// hold takes GPUs of up to two nodes.
func (s *state) hold(t *rapid.T) []Holding {
	var holds []Holding
	for range rapid.IntRange(0, 2).Draw(t, "holdings") {
		node := rapid.SampledFrom(slices.Sorted(maps.Keys(s.size))).Draw(t, "node")
		if n := rapid.IntRange(0, s.free[node]).Draw(t, "gpus"); n > 0 {
			holds = append(holds, Holding{Node: node, GPUs: n})
			s.free[node] -= n
		}
	}
	return holds
}

// domain returns the Feasibility of the state's nodes, for pods of one size, most often more than fit.
func (s *state) domain(t *rapid.T) *domain {
	each := rapid.SampledFrom([]int{1, 2, 4}).Draw(t, "each")
	fit, room := 0, 0
	for node, size := range s.size {
		fit += s.free[node] / each
		room += size / each
	}
	return &domain{free: s.free, each: each, pods: rapid.IntRange(fit, room+1).Draw(t, "pods")}
}

// change is one thing that a plan does, stated without the resolver: what it frees, and what it is called when it alone
// is left undone. Steps are separate, the last one of a Run first in undoing; who pays for one ticket goes together.
type change struct {
	run   string
	name  string
	holds []Holding
	// alone says that it can be left undone while the others are carried out.
	alone bool
}

// changes reads a plan as those who carry it out do.
func changes(candidates []Candidate, plan Plan) []change {
	var out []change
	paid := map[string][]Holding{}
	for _, c := range plan.Cuts {
		own := candidates[slices.IndexFunc(candidates, func(t Candidate) bool { return t.Run == c.Run && t.UID == c.UID })]
		called := fmt.Sprintf("%s of %s", c.Action, c.Run.Name)
		switch c.Action {
		case rqv1.CutDropSpare:
			for _, s := range own.Spares {
				if slices.Contains(c.Spares, int32(s.Index)) {
					out = append(out, change{own.Run.Name, fmt.Sprint(called, s.Index), s.Holds, true})
				}
			}
		case rqv1.CutShrink:
			for _, s := range own.Steps {
				if s.Width >= int(*c.Width) {
					out = append(out, change{own.Run.Name, fmt.Sprint(called, s.Width), s.Holds, s.Width == int(*c.Width)})
				}
			}
		case rqv1.CutLottery:
			if i := slices.IndexFunc(plan.Draws, func(d rqv1.Draw) bool {
				return slices.Contains(d.PaidBy, own.Run)
			}); i >= 0 {
				called = fmt.Sprintf("%s of those who pay for %s", c.Action, plan.Draws[i].Run.Name)
				paid[called] = append(paid[called], everything(own)...)
				continue
			}
			out = append(out, change{own.Run.Name, called, everything(own), true})
		}
	}
	for _, called := range slices.Sorted(maps.Keys(paid)) {
		out = append(out, change{"", called, paid[called], true})
	}
	return out
}

func everything(t Candidate) []Holding {
	holds := slices.Clone(t.Rest)
	for _, s := range t.Spares {
		holds = append(holds, s.Holds...)
	}
	for _, s := range t.Steps {
		holds = append(holds, s.Holds...)
	}
	return holds
}

// mayCut is all that R19 allows to cut from a candidate.
func mayCut(t Candidate) []Holding {
	all := everything(t)
	if !t.Ticket {
		return all[len(t.Rest):]
	}
	return all
}
