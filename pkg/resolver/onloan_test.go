package resolver

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestWhatIsOnLoanGoesFirst has a Run be made room for by one that has grown from 16 to 32 GPUs by steps of 8, with a
// spare for each step, and may be shrunk to 8.
func TestWhatIsOnLoanGoesFirst(t *testing.T) {
	step := func(width int, loan bool, spares ...int) Step {
		return Step{Width: width, Loan: loan, Spares: spares, Holds: []Holding{{Node: "n", GPUs: 8}}}
	}
	lender := func() Candidate {
		c := run("a", "lender")
		c.Steps = []Step{step(24, true, 3), step(16, true, 2), step(8, false, 1)}
		for i := 1; i <= 3; i++ {
			c.Spares = append(c.Spares, Spare{Index: i, Holds: []Holding{{Node: "n", GPUs: 2}}})
		}
		c.Rest, c.Ticket = []Holding{{Node: "n", GPUs: 8}}, true
		return c
	}
	name := run("a", "lender").Run
	cut := func(action rqv1.CutAction, gpus int32, width int32, spares ...int32) rqv1.Cut {
		c := rqv1.Cut{Run: name, UID: lender().UID, Action: action, GPUs: gpus, Spares: spares}
		if width > 0 {
			c.Width = &width
		}
		return c
	}
	for want, cuts := range map[int][]rqv1.Cut{
		8:  {cut(rqv1.CutReturn, 8, 24)},
		10: {cut(rqv1.CutReturn, 8, 24)}, // with the spare that goes with it
		20: {cut(rqv1.CutReturn, 16, 16)},
		22: {cut(rqv1.CutReturn, 16, 16), cut(rqv1.CutDropSpare, 2, 0, 1)},
		30: {cut(rqv1.CutReturn, 16, 16), cut(rqv1.CutShrink, 8, 8)},
		38: {cut(rqv1.CutLottery, 38, 0)},
	} {
		candidates := []Candidate{lender()}
		odds := func() []rqv1.Conflict {
			published, _, ok := Odds(&pile{want: want}, candidates)
			if !ok {
				t.Fatalf("%d GPUs cannot be had", want)
			}
			return published
		}
		published := odds()
		plan, ok := Resolve(&pile{want: want}, candidates, published, [32]byte{})
		for i := range plan.Cuts {
			plan.Cuts[i].GPUs = 0 // spares that go with a step count with it where they are not listed
		}
		for i := range cuts {
			cuts[i].GPUs = 0
		}
		if diff := cmp.Diff(cuts, plan.Cuts); !ok || diff != "" {
			t.Errorf("%d GPUs, %v (-want +got):\n%s", want, ok, diff)
		}
		if got := gpus(Freed(plan.Cuts, candidates)); got < want {
			t.Errorf("%d GPUs: only %d are freed", want, got)
		}
		if onLoan := OnLoan(published); onLoan != (want <= 20) {
			t.Errorf("%d GPUs: nobody is cut: %v", want, onLoan)
		}
	}
	// What is on loan alone: with the spares that go with it, and nothing else.
	loans := Loans([]Candidate{lender(), run("b", "own")})
	if len(loans) != 1 || len(loans[0].Steps) != 2 || len(loans[0].Spares)+len(loans[0].Rest) > 0 || loans[0].Ticket {
		t.Errorf("on loan: %+v", loans)
	}
	if _, _, ok := Odds(&pile{want: 20}, loans); !ok {
		t.Error("20 GPUs are on loan")
	}
	if _, _, ok := Odds(&pile{want: 21}, loans); ok {
		t.Error("21 GPUs are not on loan")
	}
}

// pile is a Feasibility for whoever wants so many GPUs, wherever they are.
type pile struct{ want, free int }

func (p *pile) Free(holds []Holding) { p.free += gpus(holds) }
func (p *pile) Hold(holds []Holding) { p.free -= gpus(holds) }
func (p *pile) Fits() bool           { return p.free >= p.want }
