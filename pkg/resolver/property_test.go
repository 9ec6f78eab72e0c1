package resolver

import (
	"encoding/hex"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

func TestNothingDiesInVain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawState(t, 6, 8)
		checkState(t, s.domain(t), s.candidates)
	})
}

// checkState holds the odds and a plan against what R19 to R21 promise.
func checkState(t *rapid.T, w Feasibility, candidates []Candidate) {
	var all []Holding
	for _, own := range candidates {
		all = append(all, mayCut(own)...)
	}
	w.Free(all)
	possible := w.Fits()
	w.Hold(all)
	set, how, ok := Odds(w, candidates)
	if ok != possible {
		t.Fatalf("Odds says %v, and with everything cut the Run fits: %v", ok, possible)
	}
	if !ok {
		return
	}
	seed := nonce(rapid.IntRange(0, 1<<20).Draw(t, "nonce"))
	plan, ok := Resolve(w, candidates, set, seed)
	if !ok {
		t.Fatalf("no plan, although everything cut is enough")
	}
	checkPlan(t, w, candidates, plan)
	if found := Verify(record(set, how, seed, plan)); len(found) > 0 {
		t.Errorf("the record is not valid: %q", found)
	}
	again, _ := Resolve(w, candidates, allCuts(candidates), seed)
	checkPlan(t, w, candidates, again)
}

// checkPlan carries a plan out, then leaves one thing at a time undone.
func checkPlan(t *rapid.T, w Feasibility, candidates []Candidate, plan Plan) {
	if len(plan.Cuts) > 0 && w.Fits() {
		t.Errorf("%d cuts, although the Run fits without", len(plan.Cuts))
	}
	done := changes(candidates, plan)
	freed := 0
	for _, c := range done {
		w.Free(c.holds)
		freed += gpus(c.holds)
	}
	if !w.Fits() {
		t.Errorf("the Run does not start after %+v", plan.Cuts)
	}
	for _, c := range done {
		if w.Hold(c.holds); c.alone && w.Fits() {
			t.Errorf("%s is not needed in %+v", c.name, plan.Cuts)
		}
		w.Free(c.holds)
	}
	for _, c := range done {
		w.Hold(c.holds)
	}
	for _, c := range plan.Cuts {
		freed -= int(c.GPUs)
		own := candidates[slices.IndexFunc(candidates, func(t Candidate) bool { return t.Run == c.Run })]
		if !slices.IsSorted(c.Spares) {
			t.Errorf("spares %v are not in order", c.Spares)
		}
		if c.Action == rqv1.CutLottery && !own.Ticket {
			t.Errorf("%s has no ticket, and is ended by lottery", c.Run.Name)
		}
	}
	if freed != 0 {
		t.Errorf("the plan frees %d GPUs more than it says: %+v", freed, plan.Cuts)
	}
}

// allCuts lists every action on every candidate.
func allCuts(candidates []Candidate) []rqv1.Conflict {
	var set []rqv1.Conflict
	for _, own := range candidates {
		for _, action := range actions {
			if action != rqv1.CutLottery || own.Ticket {
				set = append(set, rqv1.Conflict{Run: own.Run, Owner: own.Owner, Action: action, GPUs: 1000, Probability: "0"})
			}
		}
	}
	return set
}

// record is what a Reservation publishes of an activation.
func record(set []rqv1.Conflict, how string, seed [32]byte, plan Plan) *rqv1.Reservation {
	at := metav1.NewMicroTime(time.Unix(1_800_000_000, 0))
	return &rqv1.Reservation{Status: rqv1.ReservationStatus{
		State:       rqv1.ReservationActivating,
		ActivatedAt: &at,
		ConflictSet: set, Conflicts: TotalOf(set),
		Lottery: &rqv1.Lottery{
			Commitment: Commitment(seed), ConflictSetDigest: Digest(set), Nonce: hex.EncodeToString(seed[:]), Odds: how,
			Draws: plan.Draws,
		},
		Cuts: plan.Cuts,
	}}
}

func TestTheWorldIsLeftAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawState(t, 4, 5)
		w := s.domain(t)
		before := maps.Clone(w.free)
		set, _, _ := Odds(w, s.candidates)
		if diff := cmp.Diff(before, w.free); diff != "" {
			t.Fatalf("Odds changed it (-before +after):\n%s", diff)
		}
		Resolve(w, s.candidates, set, nonce(0))
		if diff := cmp.Diff(before, w.free); diff != "" {
			t.Fatalf("Resolve changed it (-before +after):\n%s", diff)
		}
	})
}

// TestOrderOfInputDecidesNothing also shuffles the spares, which may come in any order.
func TestOrderOfInputDecidesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawState(t, 5, 9)
		w := s.domain(t)
		set, how, ok := Odds(w, s.candidates)
		plan, _ := Resolve(w, s.candidates, set, nonce(1))
		shuffled := rapid.Permutation(s.candidates).Draw(t, "shuffled")
		for i := range shuffled {
			if len(shuffled[i].Spares) > 0 {
				shuffled[i].Spares = rapid.Permutation(shuffled[i].Spares).Draw(t, "spares")
			}
		}
		set2, how2, ok2 := Odds(w, shuffled)
		plan2, _ := Resolve(w, shuffled, set2, nonce(1))
		if diff := cmp.Diff([]any{set, how, ok, plan}, []any{set2, how2, ok2, plan2}); diff != "" {
			t.Errorf("(-one order +another):\n%s", diff)
		}
	})
}
