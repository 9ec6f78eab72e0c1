package forecast_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/outage"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// shuts has maintenance be planned for nodes that are there, from an instant until another.
func (s *scene) shuts(from, until time.Duration, nodes ...string) {
	for _, name := range nodes {
		_, labels, _ := s.Fleet.Domain(name)
		s.Fleet.SetNode(topology.Node{Name: name, Flavor: flavor, GPUs: 8, Labels: labels,
			Outage: outage.Window{Start: noon.Add(from), End: noon.Add(until)}})
	}
}

// TestOutages: the room of a node is gone for who would be there when its maintenance starts, and comes back when that
// is over.
func TestOutages(t *testing.T) {
	const hour = time.Hour
	for name, test := range map[string]struct {
		scene func() *scene
		lasts time.Duration
		want  string
	}{
		"the room comes back": {func() *scene {
			s := newScene(64, nil, 2)
			s.shuts(-hour, 2*hour, "A0")
			return s
		}, 0, "+2h0m0s known-release, short by 8 in region=west,fabric.domain=A, on A0:8 A1:8"},
		"it comes back before others may be cut": {func() *scene {
			s := newScene(64, nil, 2, 2)
			s.holds("x", "B0")
			s.shuts(-hour, 10*time.Minute, "A0")
			return s
		}, 0, "+10m0s known-release, short by 8 in region=west,fabric.domain=A, on A0:8 A1:8"},
		"others are cut before it does, elsewhere": {func() *scene {
			s := newScene(64, nil, 2, 2)
			s.holds("x", "B0")
			s.shuts(-hour, 2*hour, "A0", "A1")
			return s
		}, 0, "+15m0s conservative, short by 8 in region=west,fabric.domain=B, on B0:8 B1:8; Lottery x 1"},
		"nobody is cut where it starts soon": {func() *scene {
			s := newScene(64, nil, 2)
			s.holds("x", "A0", "A1")
			s.shuts(hour, 2*hour, "A0", "A1")
			return s
		}, 0, "no date: InsufficientGPUs"},
		"a Run that ends before it starts goes there": {func() *scene {
			s := newScene(64, nil, 2)
			s.holds("x", "A0", "A1")
			s.ends(0, 5*time.Minute)
			s.shuts(hour, 2*hour, "A0", "A1")
			return s
		}, 55 * time.Minute, "+5m0s known-release, short by 16 in region=west,fabric.domain=A, on A0:8 A1:8"},
		"one that takes a minute more waits until it is over": {func() *scene {
			s := newScene(64, nil, 2)
			s.holds("x", "A0", "A1")
			s.ends(0, 5*time.Minute)
			s.candidates = nil
			s.shuts(hour, 2*hour, "A0", "A1")
			return s
		}, 56 * time.Minute, "+2h0m0s known-release, short by 16 in region=west,fabric.domain=A, on A0:8 A1:8"},
		"nobody knows when it is over": {func() *scene {
			s := newScene(64, nil, 2)
			w := outage.Window{Start: noon}
			_, labels, _ := s.Fleet.Domain("A0")
			s.Fleet.SetNode(topology.Node{Name: "A0", Flavor: flavor, GPUs: 8, Labels: labels, Outage: w})
			return s
		}, 0, "no date: InsufficientGPUs"},
	} {
		s := test.scene()
		before := s.Fleet.Domains()
		a := ask(2)
		a.Claim.MaxDuration = test.lasts
		promise, refusal := forecast.Earliest(s.State, a)
		if diff := cmp.Diff(test.want, tell(promise, refusal)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(before, s.Fleet.Domains()); diff != "" {
			t.Errorf("%s: the fleet is not as it was:\n%s", name, diff)
		}
	}
}

func TestTheEndOfMaintenanceIsTold(t *testing.T) {
	s := newScene(64, nil, 2)
	s.shuts(-time.Hour, 2*time.Hour, "A0")
	promise, _ := forecast.Earliest(s.State, ask(2))
	if diff := cmp.Diff([]string{"Wait until the planned maintenance of nodes is over at 2026-03-01T14:00:00Z"},
		promise.Remedies); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
