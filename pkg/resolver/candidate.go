package resolver

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// Holding is GPUs held on one node, and what is held there beside them.
type Holding struct {
	Node string
	// GPUs held, 0 or more.
	GPUs   int
	Beside *topology.Amounts
}

// Step is one elastic step that a Run can give up.
type Step struct {
	// Width of the Run without it, in GPUs.
	Width int
	// Borrowed says that others than the owner pay for some of it: such steps go first (R19).
	Borrowed bool
	// Loan says that it lies beyond the Run's total: such steps are given back before anybody is cut (R23).
	Loan bool
	// Spares are the indexes of the spares that go with it, because their groups do.
	Spares []int
	// Holds is what it frees in scope; it may be empty, when the step lies elsewhere and is given up on the way to others.
	Holds []Holding
}

// Spare is one spare pod.
type Spare struct {
	// Index of the pod in its Run.
	Index int
	// Holds is what it frees in scope.
	Holds []Holding
}

// Candidate is a Run that holds GPUs in scope and may be cut. A Run is at most one candidate.
type Candidate struct {
	Run   rqv1.NamespacedName
	UID   types.UID
	Owner rqv1.Owner
	// Spares in any order; they are dropped highest index first.
	Spares []Spare
	// Steps in the order in which they are given up, the widest first.
	Steps []Step
	// Rest is what the Run holds at its least width, without its spares.
	Rest []Holding
	// Priority is what it has among the Runs of its owner; nil for one that neither pays for another of them nor has
	// another pay for it (R44). Started is when it started.
	Priority *int32
	Started  time.Time
	// Ticket says that it takes part in the lottery. A Run that may lose only spares and steps has none, nor has one whose
	// Rest is empty.
	Ticket bool
}

// Feasibility answers whether the Run that waits would start. What fits must still fit when more is free; only then is
// every cut of a Plan needed.
type Feasibility interface {
	// Free gives back GPUs that a candidate holds.
	Free([]Holding)
	// Hold takes GPUs that Free gave back.
	Hold([]Holding)
	// Fits says whether the Run would start now. It changes nothing.
	Fits() bool
}

// Plan is what an activation does, as its Reservation records it.
type Plan struct {
	// Cuts are carried out; the Run does not start without any one of them. There is one entry for a Run and action, in
	// the order of the published conflict set.
	Cuts []rqv1.Cut
	// Draws are the tickets drawn, in order, with who pays for them. A ticket that turned out not to be needed is not
	// among the cuts; the last one always is, or those are who pay for it.
	Draws []rqv1.Draw
}

// action is what giving the step up is.
func (s *Step) action() rqv1.CutAction {
	if s.Loan {
		return rqv1.CutReturn
	}
	return rqv1.CutShrink
}

// actions in the order of R19, after what R23 has on loan.
var actions = []rqv1.CutAction{rqv1.CutReturn, rqv1.CutDropSpare, rqv1.CutShrink, rqv1.CutLottery}

// gpus is the size of holdings.
func gpus(holds []Holding) int {
	n := 0
	for _, h := range holds {
		n += h.GPUs
	}
	return n
}

func (t *Candidate) spareGPUs() int {
	n := 0
	for _, s := range t.Spares {
		n += gpus(s.Holds)
	}
	return n
}

// All lists what the candidate holds in scope that may be had of it.
func (t *Candidate) All() []Holding {
	var out []Holding
	for i := range t.Spares {
		out = append(out, t.Spares[i].Holds...)
	}
	for i := range t.Steps {
		out = append(out, t.Steps[i].Holds...)
	}
	if t.draws() {
		out = append(out, t.Rest...)
	}
	return out
}

// draws says whether the candidate takes part in the lottery.
func (t *Candidate) draws() bool { return t.Ticket && gpus(t.Rest) > 0 }

// sorted returns the candidates by owner, namespace and name: the order of published entries of one action.
func sorted(candidates []Candidate) []Candidate {
	candidates = slices.Clone(candidates)
	slices.SortFunc(candidates, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), byName(a.Run, b.Run))
	})
	return candidates
}

// byName orders Runs by namespace, then name.
func byName(a, b rqv1.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
