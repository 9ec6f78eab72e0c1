package forecast_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// inLine has a Run hold the only node, and so many wait for it, each of which goes for the next one a quarter of an
// hour later, and would end by itself after ten hours.
func inLine(budgeted int32, waiting int) *scene {
	s := newScene(budgeted, nil, 1)
	s.holds("tenant", "A0")
	s.pays("tenant", "A0")
	s.NotBefore = noon
	previous := forecast.Release{Run: s.candidates[0].Run, Holds: s.candidates[0].Rest, Leases: []string{"tenant"}}
	for i := range waiting {
		at := noon.Add(time.Duration(i+1) * 15 * time.Minute)
		name := fmt.Sprintf("ahead%02d", i)
		a := forecast.Ahead{Run: rqv1.NamespacedName{Namespace: "ns", Name: name}, Owner: "org:a", At: at,
			Shielded: at.Add(15 * time.Minute), Ends: at.Add(10 * time.Hour), Ousts: []forecast.Release{previous},
			Holds: []resolver.Holding{{Node: "A0", GPUs: 8}},
			Charges: map[string]budget.Charge{name: {Payer: budget.Key{Budget: "b", Envelope: "e"}, Owner: "org:a", Run: name,
				Relation: rqv1.RelationOwn, Role: rqv1.RoleActive, GPUs: 8, Rate: budget.FullRate, Start: at, Flavor: flavor,
				Node: "A0"}}}
		s.Ahead = append(s.Ahead, a)
		s.Shields = append(s.Shields, a.Shielded)
		previous = forecast.Release{Run: a.Run}
	}
	s.candidates = nil // nobody may be cut but those who come
	return s
}

// Whoever goes for a Run ahead is gone by then: nobody is cut twice, and a Budget of two nodes pays for all in turn.
func TestBehindALineOfThoseWhoGoForEachOther(t *testing.T) {
	for _, test := range []struct {
		waiting int
		want    string
	}{
		{1, "+30m0s conservative, short by 8 in region=west,fabric.domain=A, on A0:8; Lottery ahead00 1"},
		{31, "+8h0m0s conservative, short by 8 in region=west,fabric.domain=A, on A0:8; Lottery ahead30 1"},
	} {
		s := inLine(16, test.waiting)
		before := s.Fleet.Domains()
		if diff := cmp.Diff(test.want, tell(forecast.Earliest(s.State, ask(1)))); diff != "" {
			t.Errorf("behind %d (-want +got):\n%s", test.waiting, diff)
		}
		if diff := cmp.Diff(before, s.Fleet.Domains()); diff != "" {
			t.Errorf("behind %d: the fleet is not as it was:\n%s", test.waiting, diff)
		}
	}
}

// The end of a Run that is ahead gives a date to whoever waits behind it, also behind many.
func TestBehindALineOfThoseWhoEnd(t *testing.T) {
	s := newScene(8, nil, 1)
	s.holds("tenant", "A0")
	s.ends(0, time.Hour)
	s.candidates = nil
	for i := range 31 {
		at := noon.Add(time.Duration(i+1) * time.Hour)
		s.Ahead = append(s.Ahead, forecast.Ahead{Run: rqv1.NamespacedName{Name: fmt.Sprintf("ahead%02d", i)}, Owner: "org:b",
			At: at, Shielded: at.Add(100 * time.Hour), Ends: at.Add(time.Hour),
			Holds: []resolver.Holding{{Node: "A0", GPUs: 8}}})
	}
	want := "+32h0m0s known-release, short by 8 in region=west,fabric.domain=A, on A0:8"
	if diff := cmp.Diff(want, tell(forecast.Earliest(s.State, ask(1)))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A Run that is ahead and has ended by then holds nothing: whoever has come after it does.
func TestWhoHasEndedIsNotCut(t *testing.T) {
	s := newScene(8, nil, 1)
	s.NotBefore = noon.Add(2 * time.Hour)
	for i, ends := range []time.Duration{time.Hour, 100 * time.Hour} {
		at := noon.Add(time.Duration(i)*time.Hour + time.Minute)
		s.Ahead = append(s.Ahead, forecast.Ahead{Run: rqv1.NamespacedName{Name: fmt.Sprintf("ahead%02d", i)}, Owner: "org:b",
			At: at, Shielded: at.Add(90 * time.Minute), Ends: at.Add(ends),
			Holds: []resolver.Holding{{Node: "A0", GPUs: 8}}})
	}
	s.Ahead[0].Shielded = s.Ahead[0].At
	s.Shields = []time.Time{s.Ahead[0].Shielded, s.Ahead[1].Shielded}
	want := "+2h31m0s conservative, short by 8 in region=west,fabric.domain=A, on A0:8; Lottery ahead01 1"
	if diff := cmp.Diff(want, tell(forecast.Earliest(s.State, ask(1)))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Of many promises those with the first dates are looked at: from the date of the next on, the same node might be
// promised twice.
func TestNoDateIsGivenFromWhenOnNotAllPromisesAreKnown(t *testing.T) {
	for after, dated := range map[time.Duration]bool{0: true, 8*time.Hour + time.Second: true, 8 * time.Hour: false,
		time.Hour: false} {
		s := inLine(16, 31) // a date in 8 hours
		if after > 0 {
			s.Known = noon.Add(after)
		}
		if p, refusal := forecast.Earliest(s.State, ask(1)); (p != nil) != dated || (refusal == nil) != dated {
			t.Errorf("all promises are known for %s: %+v, %+v", after, p, refusal)
		}
	}
}

// Whom a Run cuts that comes later, or after it on the same date, it cuts by where the first goes: so the first does
// not wait for that, unless it may cut nobody itself.
func TestNobodyWaitsForWhomLaterOnesCut(t *testing.T) {
	const (
		lead  = 15 * time.Minute
		cuts  = "+15m0s conservative, short by 8 in region=west,fabric.domain=A, on A0:8; Lottery x 1"
		waits = " known-release, short by 8 in region=west,fabric.domain=B, on B1:8"
	)
	for name, test := range map[string]struct {
		at            time.Duration
		younger, cuts bool // the Run ahead is younger, and the Run may cut others itself
		want          string
	}{
		"the same date, older":             {lead, false, true, "+15m0s" + waits},
		"the same date, younger":           {lead, true, true, cuts},
		"a little later":                   {lead + time.Second, false, true, cuts},
		"the same date, and no other way":  {lead, true, false, "+15m0.000000001s" + waits},
		"a little later, and no other way": {lead + time.Second, true, false, "+15m1.000000001s" + waits},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(64, nil, 1, 2)
			s.holds("x", "A0")
			s.holds("y", "B0", "B1")
			y := s.candidates[1]
			at := noon.Add(test.at)
			s.Ahead = []forecast.Ahead{{Run: rqv1.NamespacedName{Name: "ahead"}, Owner: "org:b", At: at,
				Shielded: at.Add(time.Hour), Younger: test.younger, Ousts: []forecast.Release{{Run: y.Run, Holds: y.Rest}},
				Holds: []resolver.Holding{{Node: "B0", GPUs: 8}}}}
			if !test.cuts {
				s.candidates = nil
			}
			if diff := cmp.Diff(test.want, tell(forecast.Earliest(s.State, ask(1)))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A promise names those for whom others go before it if it would not hold without that, and nobody otherwise: nobody
// else has to keep clear of it.
func TestAPromiseNamesThoseItRestsOn(t *testing.T) {
	ahead := []rqv1.NamespacedName{{Name: "ahead"}}
	for name, test := range map[string]struct {
		cuts, ends bool     // who holds the other domain may be cut, or ends by itself
		goes       []string // where those are who go for the Run ahead, which takes the first of these nodes
		want       []rqv1.NamespacedName
	}{
		"others are cut for it":     {true, false, []string{"A0"}, nil},
		"others end":                {false, true, []string{"A0"}, nil},
		"what the first one leaves": {false, false, []string{"A0", "A1"}, ahead},
		"though others end later":   {false, true, []string{"A0", "A1"}, ahead},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(64, nil, 2, 1)
			s.holds("x", test.goes...)
			s.holds("y", "B0")
			if len(test.goes) == 1 {
				s.Fleet.Take("A1", 8)
			}
			x := s.candidates[0]
			if test.ends {
				s.ends(1, 20*time.Minute)
			}
			if s.candidates = s.candidates[1:]; !test.cuts {
				s.candidates = nil
			}
			at := noon.Add(10 * time.Minute)
			s.Ahead = []forecast.Ahead{{Run: ahead[0], Owner: "org:b", At: at, Shielded: at.Add(time.Hour),
				Ousts: []forecast.Release{{Run: x.Run, Holds: x.Rest}},
				Holds: []resolver.Holding{{Node: "A0", GPUs: 8}}}}
			before := s.Fleet.Domains()
			p, refusal := forecast.Earliest(s.State, ask(1))
			if refusal != nil || !cmp.Equal(test.want, p.After) {
				t.Errorf("it is promised %s, after %v, want %v", tell(p, refusal), p.After, test.want)
			}
			if diff := cmp.Diff(before, s.Fleet.Domains()); diff != "" {
				t.Errorf("the fleet is not as it was:\n%s", diff)
			}
		})
	}
}

// A promise that does without those who go for a Run ahead lies on none of their nodes, although they are free by then:
// that Run may be promised its start anew with nobody cut, on what this one leaves.
func TestAPromiseLiesOnNobodysNodesWhomItDoesNotRestOn(t *testing.T) {
	for name, cuts := range map[string]bool{"others end": false, "others are cut for it": true} {
		t.Run(name, func(t *testing.T) {
			s := newScene(64, nil, 4)
			s.holds("x", "A0", "A1")
			s.holds("y", "A2", "A3")
			if !cuts {
				s.ends(1, 20*time.Minute)
			}
			x := s.candidates[0]
			if s.candidates = s.candidates[1:]; !cuts {
				s.candidates = nil
			}
			at := noon.Add(10 * time.Minute)
			s.Ahead = []forecast.Ahead{{Run: rqv1.NamespacedName{Name: "ahead"}, Owner: "org:b", At: at,
				Shielded: at.Add(time.Hour), Ousts: []forecast.Release{{Run: x.Run, Holds: x.Rest}},
				Holds: []resolver.Holding{{Node: "A0", GPUs: 8}}}}
			p, refusal := forecast.Earliest(s.State, ask(2))
			if refusal != nil {
				t.Fatal(refusal)
			}
			want := []resolver.Holding{{Node: "A2", GPUs: 8}, {Node: "A3", GPUs: 8}}
			if diff := cmp.Diff(want, p.Nodes); diff != "" || p.After != nil {
				t.Errorf("after %v, on (-want +got):\n%s", p.After, diff)
			}
		})
	}
}
