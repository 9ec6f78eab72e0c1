package resolver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// drawRanked draws Runs of two owners that hold nodes of 4 GPUs, have tickets, and most of them classes, for a Run that
// needs some of those nodes: one of them often pays for another.
func drawRanked(t *rapid.T) *state {
	s := &state{size: map[string]int{}, free: map[string]int{}}
	l := newLot(20, 4)
	for i := range rapid.IntRange(2, 6).Draw(t, "candidates") {
		c := holder(l, rapid.SampledFrom([]string{"a", "a", "b"}).Draw(t, "owner"), fmt.Sprint("r", i),
			4*rapid.IntRange(1, 3).Draw(t, "nodes"), rapid.Int32Range(-1, 2).Draw(t, "priority"),
			int64(rapid.IntRange(0, 3).Draw(t, "started")))
		if rapid.IntRange(0, 4).Draw(t, "has a class") == 0 {
			c.Priority = nil
		}
		s.candidates = append(s.candidates, c)
	}
	for n := range l.used / l.size {
		name := fmt.Sprintf("n%03d", n)
		s.size[name], s.free[name] = l.size, l.free[name]
	}
	return s
}

// Whatever one owner does with its priorities, the same tickets are drawn, others lose the same, and with the same
// odds. They lose less where both have Runs that pay, and these free so much that something more need not be cut; and
// something else of their own where what both would lose does not fit together.
func TestPrioritiesOfAnOwnerAreNothingToOthers(t *testing.T) {
	paid := 0
	for seed := range 200 { // few draws have one pay for another, and those of another run may be none
		paid += rapid.Custom(prioritiesAreNothingToOthers).Example(seed)
	}
	if paid == 0 {
		t.Error("nobody has paid for another")
	}
	rapid.Check(t, func(t *rapid.T) { prioritiesAreNothingToOthers(t) })
}

// prioritiesAreNothingToOthers draws Runs and holds that so it is. It returns how often one has paid for another.
func prioritiesAreNothingToOthers(t *rapid.T) (paid int) {
	s := drawState(t, 6, 7)
	if rapid.Bool().Draw(t, "of tickets alone") {
		s = drawRanked(t)
	}
	w := s.domain(t)
	none := slices.Clone(s.candidates)
	for i := range none {
		if none[i].Owner == "org:a" {
			none[i].Priority = nil
		}
	}
	ofOthers := func(set []rqv1.Conflict) []rqv1.Conflict {
		return slices.DeleteFunc(slices.Clone(set), func(c rqv1.Conflict) bool { return c.Owner == "org:a" })
	}
	set, how, ok := Odds(w, s.candidates)
	set2, how2, ok2 := Odds(w, none)
	if diff := cmp.Diff([]any{ofOthers(set2), how2, ok2}, []any{ofOthers(set), how, ok}); diff != "" {
		t.Fatalf("what is published of others (-without priorities +with):\n%s", diff)
	}
	seed := nonce(rapid.IntRange(0, 1<<20).Draw(t, "seed"))
	by := func(candidates []Candidate, published []rqv1.Conflict) Plan {
		trial := newSimulation(w, within(candidates, published))
		defer trial.restore()
		plan, _ := trial.resolve(newDraw(seed, newUrn(trial.tickets())), published)
		for _, d := range plan.Draws {
			paid += len(d.PaidBy)
		}
		return plan
	}
	with, without := by(s.candidates, set), by(none, set2)
	if diff := cmp.Diff(ticketsOf(without.Draws), ticketsOf(with.Draws)); diff != "" {
		t.Fatalf("who is drawn (-without priorities +with):\n%s", diff)
	}
	was, is := others(without.Cuts), others(with.Cuts)
	if diff := cmp.Diff(was, is); diff != "" && !lessIsCut(s.candidates, was, is) &&
		enough(w, s.candidates, slices.Concat(was, ofA(with.Cuts))) {
		t.Fatalf("what others lose (-without priorities +with):\n%s", diff)
	}
	return paid
}

// ofA are the cuts of owner a, and others all others.
func ofA(cuts []rqv1.Cut) []rqv1.Cut {
	return slices.DeleteFunc(slices.Clone(cuts), func(c rqv1.Cut) bool {
		return !strings.HasSuffix(c.Run.Namespace, "-a")
	})
}

func others(cuts []rqv1.Cut) []rqv1.Cut {
	return slices.DeleteFunc(slices.Clone(cuts), func(c rqv1.Cut) bool { return strings.HasSuffix(c.Run.Namespace, "-a") })
}

// lessIsCut reports whether cuts take nothing that others do not.
func lessIsCut(candidates []Candidate, was, is []rqv1.Cut) bool {
	held := map[string]int{}
	for _, c := range changes(candidates, Plan{Cuts: was}) {
		for _, h := range c.holds {
			held[c.run+h.Node] += h.GPUs
		}
	}
	for _, c := range changes(candidates, Plan{Cuts: is}) {
		for _, h := range c.holds {
			if held[c.run+h.Node] -= h.GPUs; held[c.run+h.Node] < 0 {
				return false
			}
		}
	}
	return true
}

// enough reports whether the Run that waits fits after some cuts.
func enough(w Feasibility, candidates []Candidate, cuts []rqv1.Cut) bool {
	done := changes(candidates, Plan{Cuts: cuts})
	for _, c := range done {
		w.Free(c.holds)
	}
	fits := w.Fits()
	for _, c := range done {
		w.Hold(c.holds)
	}
	return fits
}

// The highest priority is saved first, whoever was drawn first.
func TestTheHighestPriorityIsPaidForFirst(t *testing.T) {
	l := newLot(3, 4)
	candidates := []Candidate{holder(l, "a", "top", 4, 9, 1), holder(l, "a", "mid", 4, 5, 1),
		holder(l, "a", "low", 4, 1, 1)}
	w := &domain{free: map[string]int{}, pods: 2, each: 4}
	set, how, _ := Odds(w, candidates)
	if diff := cmp.Diff("Lottery org:a ns-a/low 4 1 1\nLottery org:a ns-a/mid 4 1 5\nLottery org:a ns-a/top 4 0 9\n",
		Text(set)); diff != "" || how != "exact" {
		t.Errorf("%s odds (-want +got):\n%s", how, diff)
	}
	for n := range 30 {
		plan, _ := Resolve(w, candidates, set, nonce(n))
		if diff := cmp.Diff([]string{"low", "mid"}, ends(plan.Cuts)); diff != "" {
			t.Errorf("ended by lottery after draws %v (-want +got):\n%s", ticketsOf(plan.Draws), diff)
		}
		for _, d := range plan.Draws {
			if d.Run.Name == "mid" && len(d.PaidBy) > 0 {
				t.Errorf("mid is paid by %v, and top is not first", d.PaidBy)
			}
		}
	}
}

// TestWhoPaysOfOneOwnerFreesAsMuch: the Run that waits would fit as well if b's small Run ended for its large one,
// unless a's small Run ended for its large one. Neither frees what was drawn, so that neither owner's priorities are
// anything to the other.
func TestWhoPaysOfOneOwnerFreesAsMuch(t *testing.T) {
	ended := map[bool][]string{}
	for _, ranked := range []bool{true, false} {
		l := newLot(20, 1)
		candidates := []Candidate{holder(l, "a", "a9", 9, 9, 1), holder(l, "a", "a8", 8, 1, 1),
			holder(l, "b", "b2", 2, 9, 1), holder(l, "b", "b1", 1, 1, 1)}
		if !ranked {
			candidates[0].Priority, candidates[1].Priority = nil, nil
		}
		w := &domain{free: map[string]int{}, pods: 10, each: 1}
		set, _, _ := Odds(w, candidates)
		for n := range 100 {
			plan, _ := Resolve(w, candidates, set, nonce(n))
			if d := ticketsOf(plan.Draws); d[0].Run.Name+d[1].Run.Name == "a9b2" {
				ended[ranked] = ends(plan.Cuts)
				break
			}
		}
	}
	want := []string{"a9", "b2"}
	if diff := cmp.Diff(map[bool][]string{true: want, false: want}, ended); diff != "" {
		t.Errorf("ended by lottery with and without priorities of a (-want +got):\n%s", diff)
	}
}

// ranks is many tickets of one owner, a tenth of them ten times as large as the others, of a higher priority if ranked.
func ranks(n int, ranked bool) (*domain, []Candidate) {
	l := newLot(16*n, 8)
	var candidates []Candidate
	for i := range n / 10 {
		candidates = append(candidates, holder(l, "a", fmt.Sprintf("top%03d", i), 80, 9, int64(i)))
	}
	for i := range n {
		candidates = append(candidates, holder(l, "a", fmt.Sprintf("low%03d", i), 8, 1, int64(i)))
	}
	for i := range candidates {
		if !ranked {
			candidates[i].Priority = nil
		}
	}
	return &domain{free: map[string]int{}, pods: n, each: 8}, candidates
}

// TestPaymentAsksLittle bounds the questions to feasibility, which are what takes time, also where there are many
// tickets and payments: of a draw, and of the odds. Those who are not paid for then pay themselves, and the record is
// valid all the same.
func TestPaymentAsksLittle(t *testing.T) {
	for _, n := range []int{20, 70, 200, 400} {
		w, plain := ranks(n, false)
		_, sample, _ := Odds(w, plain)
		w, candidates := ranks(n, true)
		set, how, ok := Odds(w, candidates)
		if !ok || w.asks > 1000+2*payAsks || !strings.HasPrefix(how, sample) {
			t.Errorf("%d tickets: %d questions, odds %q, %v; want at most %d, %q", len(candidates), w.asks, how, ok,
				1000+2*payAsks, sample)
		}
		odds := w.asks
		w.asks = 0
		plan, ok := Resolve(w, candidates, set, nonce(1))
		if most := len(candidates) + payAsks; !ok || w.asks > most {
			t.Errorf("%d tickets: %d questions for the draw, want at most %d", len(candidates), w.asks, most)
		}
		paid := 0
		for _, d := range plan.Draws {
			if paid += min(1, len(d.PaidBy)); len(d.PaidBy) > maxPayers {
				t.Errorf("%s is paid by %d", d.Run.Name, len(d.PaidBy))
			}
		}
		if paid == 0 {
			t.Errorf("%d tickets: nobody is paid for", len(candidates))
		}
		if found := Verify(record(set, how, nonce(1), plan)); len(found) > 0 {
			t.Errorf("%d tickets: the record is not valid: %q", len(candidates), found)
		}
		t.Logf("%d tickets: %d questions, %s; %d for a draw of %d, %d of them paid for", len(candidates), odds, how, w.asks,
			len(plan.Draws), paid)
	}
}

// Where payments take too many questions to be worked out for all ways to draw, those that are stand for the others.
func TestOddsWhereOnlySomePaymentsAreWorkedOut(t *testing.T) {
	w, candidates := crowd(24, 16)
	for i := range candidates {
		priority := int32(i % 2)
		candidates[i].Owner, candidates[i].Priority = candidates[i%3].Owner, &priority
	}
	set, how, ok := Odds(w, candidates)
	var size, some, of int
	var within float64
	if n, err := fmt.Sscanf(how, "sampled %d, within %f at 95 %%; who pays by %d of %d outcomes", &size, &within, &some,
		&of); n != 4 || err != nil || !ok || some < of/4 {
		t.Fatalf("odds are %q, %v: %v", how, ok, err)
	}
	checkFrequencies(t, w, candidates, set, 1000, func(float64) float64 { return 3 * within })
}

// TestOwnersPayAsIfNoOtherPaid: a's large Run is paid by two, without one of which the Run that waits would fit since
// b's payer frees more than what b was drawn for. What b loses is the same as when a has no priorities.
func TestOwnersPayAsIfNoOtherPaid(t *testing.T) {
	for _, ranked := range []bool{true, false} {
		l := newLot(9, 4)
		candidates := []Candidate{holder(l, "b", "b12", 12, 0, 1), holder(l, "b", "b8", 8, 1, 1),
			holder(l, "a", "a4", 4, 0, 1), holder(l, "a", "a4too", 4, 0, 1), holder(l, "a", "a8", 8, 1, 1)}
		want := []string{"a4", "a4too", "b12"}
		if !ranked {
			for i := range 3 {
				candidates[2+i].Priority = nil
			}
			want = []string{"a8", "b12"}
		}
		w := &domain{free: map[string]int{}, pods: 4, each: 4}
		set, how, _ := Odds(w, candidates)
		for n := range 100 {
			plan, _ := Resolve(w, candidates, set, nonce(n))
			if d := ticketsOf(plan.Draws); len(d) != 2 || d[0].Run.Name+d[1].Run.Name != "a8b8" {
				continue
			}
			if diff := cmp.Diff(want, ends(plan.Cuts)); diff != "" {
				t.Errorf("ended, a with priorities: %v (-want +got):\n%s", ranked, diff)
			}
			if found := Verify(record(set, how, nonce(n), plan)); len(found) > 0 {
				t.Errorf("the record is not valid: %q", found)
			}
			break
		}
	}
}

// TestWhatSeveralOwnersPayTooMuch: two owners' payers free 4 GPUs each more than what was drawn of them, which is as
// much as c was drawn for: c is spared.
func TestWhatSeveralOwnersPayTooMuch(t *testing.T) {
	l := newLot(14, 4)
	candidates := []Candidate{holder(l, "a", "a8", 8, 1, 1), holder(l, "a", "a12", 12, 0, 1),
		holder(l, "b", "b8", 8, 1, 1), holder(l, "b", "b12", 12, 0, 1), holder(l, "c", "c8", 8, 0, 1)}
	w := &domain{free: map[string]int{}, pods: 6, each: 4}
	set, how, _ := Odds(w, candidates)
	seen := false
	for n := range 100 {
		plan, _ := Resolve(w, candidates, set, nonce(n))
		drawn := map[string]bool{}
		for _, d := range plan.Draws {
			drawn[d.Run.Name] = true
		}
		if len(drawn) != 3 || !drawn["a8"] || !drawn["b8"] || !drawn["c8"] {
			continue
		}
		seen = true
		if diff := cmp.Diff([]string{"a12", "b12"}, ends(plan.Cuts)); diff != "" {
			t.Errorf("ended after %v (-want +got):\n%s", ticketsOf(plan.Draws), diff)
		}
		if found := Verify(record(set, how, nonce(n), plan)); len(found) > 0 {
			t.Errorf("the record is not valid: %q", found)
		}
	}
	if !seen {
		t.Error("no draw of a8, b8 and c8")
	}
}
