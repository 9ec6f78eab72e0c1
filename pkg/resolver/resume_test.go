package resolver

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestActivationIsResumed has candidates end between the publication of the conflict set and the draw, as after a
// restart: the draw is the same, and still only what was published is cut.
func TestActivationIsResumed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawState(t, 6, 8)
		w := s.domain(t)
		set, how, ok := Odds(w, s.candidates)
		if !ok {
			return
		}
		seed := nonce(rapid.IntRange(0, 1000).Draw(t, "nonce"))
		before, _ := Resolve(w, s.candidates, set, seed)
		var left []Candidate
		for _, own := range s.candidates {
			if rapid.IntRange(0, 3).Draw(t, "ends") == 0 {
				w.Free(everything(own))
			} else {
				left = append(left, own)
			}
		}
		after, ok := Resolve(w, left, set, seed)
		if !ok {
			t.Fatalf("no plan, although there is more room than before")
		}
		checkPlan(t, w, left, after)
		if found := Verify(record(set, how, seed, after)); len(found) > 0 {
			t.Errorf("the record is not valid: %q", found)
		}
		shared := min(len(before.Draws), len(after.Draws))
		if !slices.Equal(ticketsOf(before.Draws[:shared]), ticketsOf(after.Draws[:shared])) {
			t.Errorf("draws %v before, and %v after", before.Draws, after.Draws)
		}
	})
}

// TestWhatIsGainedSinceIsNotCountedOn has candidates hold more by the time of the draw than when the conflict set was
// published: the record says no more than that did.
func TestWhatIsGainedSinceIsNotCountedOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawState(t, 6, 8)
		w := s.domain(t)
		later := slices.Clone(s.candidates)
		var gained []Holding
		for i := range s.candidates {
			own := &s.candidates[i]
			if len(own.Spares) > 0 && rapid.Bool().Draw(t, "a spare comes") {
				gained = append(gained, own.Spares[0].Holds...)
				own.Spares = own.Spares[1:]
			}
			if len(own.Rest) > 1 && rapid.Bool().Draw(t, "a rank comes") {
				gained = append(gained, own.Rest[0])
				own.Rest = own.Rest[1:]
			}
		}
		w.Free(gained)
		set, how, ok := Odds(w, s.candidates)
		w.Hold(gained)
		if !ok {
			return
		}
		seed := nonce(rapid.IntRange(0, 1000).Draw(t, "nonce"))
		decided, ok := Resolve(w, later, set, seed)
		if !ok || len(decided.Cuts) == 0 {
			return // others have taken what was to be free
		}
		if found := Verify(record(set, how, seed, decided)); len(found) > 0 {
			t.Errorf("the record is not valid: %q", found)
		}
	})
}

// TestAllOrNothing has the published cuts not suffice any more, because room was lost.
func TestAllOrNothing(t *testing.T) {
	w, candidates := secondExample()
	set, _, _ := Odds(w, candidates)
	for node := range w.free {
		w.free[node] -= 2
	}
	before := maps.Clone(w.free)
	if plan, ok := Resolve(w, candidates, set, nonce(0)); ok || len(plan.Cuts)+len(plan.Draws) > 0 {
		t.Errorf("a plan %+v, although the Run cannot start", plan)
	}
	if diff := cmp.Diff(before, w.free); diff != "" {
		t.Errorf("feasibility changed (-before +after):\n%s", diff)
	}
}

// TestOnlyWhatIsPublishedIsCut leaves entries out of the first example's conflict set.
func TestOnlyWhatIsPublishedIsCut(t *testing.T) {
	w, candidates := firstExample()
	entry := func(i int, action rqv1.CutAction) rqv1.Conflict {
		return rqv1.Conflict{Run: candidates[i].Run, Owner: candidates[i].Owner, Action: action, GPUs: 1000, Probability: "1"}
	}
	for _, tc := range []struct {
		name      string
		published []rqv1.Conflict
		want      []int32 // GPUs of the cuts; nil when there is no plan
	}{
		{"the steps go with the ticket", []rqv1.Conflict{entry(1, rqv1.CutLottery)}, []int32{24}},
		{"only steps", []rqv1.Conflict{entry(1, rqv1.CutShrink)}, nil},
		{"a ticket of a Run that is gone", []rqv1.Conflict{
			{Run: rqv1.NamespacedName{Namespace: "ns-a", Name: "gone"}, Owner: "org:a", Action: rqv1.CutLottery},
			entry(0, rqv1.CutLottery),
		}, []int32{32}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			plan, _ := Resolve(w, candidates, tc.published, nonce(0))
			var got []int32
			for _, c := range plan.Cuts {
				got = append(got, c.GPUs)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("GPUs of cuts (-want +got):\n%s", diff)
			}
		})
	}
}
