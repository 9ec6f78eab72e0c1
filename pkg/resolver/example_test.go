package resolver

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// firstExample is DESIGN's first: 14 GPUs of 72 are free, and 32 are wanted in pods of 4.
func firstExample() (*domain, []Candidate) {
	l := newLot(18, 4)
	j1, j2, j3 := run("a", "j1"), run("b", "j2"), run("a", "j3")
	j1.Rest, j1.Ticket = l.take(32), true
	j2.Rest, j2.Ticket = l.take(8), true
	j2.Steps = []Step{{Width: 16, Holds: l.take(8)}, {Width: 8, Holds: l.take(8)}}
	j3.Rest, j3.Ticket = l.take(2), true
	return &domain{free: l.free, pods: 8, each: 4}, []Candidate{j1, j2, j3}
}

// secondExample is DESIGN's second: 4 GPUs of 72 are free, and 64 are wanted.
func secondExample() (*domain, []Candidate) {
	l := newLot(18, 4)
	ra2, mm1, mm2 := run("sys", "ra2"), run("vis", "mm1"), run("aud", "mm2")
	ra2.Rest, ra2.Ticket = l.take(16), true
	mm1.Rest, mm1.Ticket = l.take(48), true
	mm2.Rest, mm2.Ticket = l.take(4), true
	return &domain{free: l.free, pods: 16, each: 4}, []Candidate{ra2, mm1, mm2}
}

func TestOddsOfTheExamples(t *testing.T) {
	for _, tc := range []struct {
		name  string
		world func() (*domain, []Candidate)
		want  string
	}{
		{"first", firstExample, "Shrink org:b ns-b/j2 16 0.25\n" +
			"Lottery org:a ns-a/j1 32 0.25\nLottery org:a ns-a/j3 2 0.25\nLottery org:b ns-b/j2 8 0.5\n"},
		{"second", secondExample, "Lottery org:aud ns-aud/mm2 4 0\n" +
			"Lottery org:sys ns-sys/ra2 16 1\nLottery org:vis ns-vis/mm1 48 1\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, candidates := tc.world()
			set, how, ok := Odds(w, candidates)
			if !ok || how != "exact" {
				t.Fatalf("odds are %q, %v; want exact ones", how, ok)
			}
			if diff := cmp.Diff(tc.want, Text(set)); diff != "" {
				t.Errorf("conflict set (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSecondExampleSparesMM2(t *testing.T) {
	w, candidates := secondExample()
	set, _, _ := Odds(w, candidates)
	drawn := 0
	for n := range 200 {
		plan, ok := Resolve(w, candidates, set, nonce(n))
		var ended []string
		for _, c := range plan.Cuts {
			ended = append(ended, c.Run.Name)
		}
		if !ok || !slices.Equal(ended, []string{"ra2", "mm1"}) {
			t.Fatalf("nonce %d cuts %v, want ra2 and mm1", n, ended)
		}
		if slices.ContainsFunc(plan.Draws, func(d rqv1.Draw) bool { return d.Run.Name == "mm2" }) {
			drawn++
		}
	}
	if drawn == 0 || drawn == 200 {
		t.Errorf("mm2 was drawn %d times of 200, want some", drawn)
	}
}

func TestFirstExamplePlans(t *testing.T) {
	w, candidates := firstExample()
	set, _, _ := Odds(w, candidates)
	width := int32(8)
	j1 := rqv1.Cut{Run: candidates[0].Run, UID: candidates[0].UID, Action: rqv1.CutLottery, GPUs: 32}
	j2 := rqv1.Cut{Run: candidates[1].Run, UID: candidates[1].UID, Action: rqv1.CutLottery, GPUs: 24}
	j3 := rqv1.Cut{Run: candidates[2].Run, UID: candidates[2].UID, Action: rqv1.CutLottery, GPUs: 2}
	shrink := rqv1.Cut{Run: candidates[1].Run, UID: candidates[1].UID, Action: rqv1.CutShrink, GPUs: 16, Width: &width}
	want := map[string][]rqv1.Cut{"j1": {j1}, "j2": {j2}, "j3": {shrink, j3}}
	met := map[string]int{}
	for n := range 400 {
		plan, ok := Resolve(w, candidates, set, nonce(n))
		if !ok || len(plan.Draws) != 1 {
			t.Fatalf("nonce %d: draws %v, want one", n, plan.Draws)
		}
		first := plan.Draws[0].Run.Name
		met[first]++
		if diff := cmp.Diff(want[first], plan.Cuts); diff != "" {
			t.Errorf("nonce %d draws %s: cuts (-want +got):\n%s", n, first, diff)
		}
	}
	if len(met) != 3 || met["j2"] < 160 || met["j2"] > 240 {
		t.Errorf("drawn %v, want j2 in about 200 of 400", met)
	}
}
