package forecast_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

const flavor = "H100"

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// scene is a fleet of domains of nodes with 8 GPUs each, one Budget, and what is known of the future.
type scene struct {
	forecast.State
	candidates []resolver.Candidate
}

func newScene(budgeted int32, window *metav1.Time, domains ...int) *scene {
	s := &scene{State: forecast.State{
		Fleet:    topology.NewFleet([]string{"region", "fabric.domain"}, "fabric.domain"),
		Accounts: budget.NewAccounts(budget.Rates{}),
		Now:      noon, NotBefore: noon.Add(15 * time.Minute), WindowDelay: 10 * time.Second,
	}}
	for d, nodes := range domains {
		for n := range nodes {
			domain := string(rune('A' + d))
			s.Fleet.SetNode(topology.Node{Name: fmt.Sprintf("%s%d", domain, n), Flavor: flavor, GPUs: 8,
				Labels: map[string]string{"region": "west", "fabric.domain": domain}})
		}
	}
	s.setBudget(rqv1.Envelope{Name: "e", Flavor: flavor, Concurrency: budgeted, Start: window})
	s.Candidates = func(domains map[string]bool, _ time.Time) []resolver.Candidate {
		var out []resolver.Candidate
		for _, t := range s.candidates {
			for _, h := range t.Rest {
				if domain, _, _ := s.Fleet.Domain(h.Node); domains[domain] {
					out = append(out, t)
					break
				}
			}
		}
		return out
	}
	return s
}

func (s *scene) setBudget(e rqv1.Envelope) {
	s.Accounts.SetBudget(&rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: rqv1.BudgetSpec{Owner: "org:a",
		Envelopes: []rqv1.Envelope{e}}})
}

// pays has the envelope pay for what a Run holds on a node since now, without an end.
func (s *scene) pays(run, node string) {
	s.Accounts.Open(run, budget.Charge{Payer: budget.Key{Budget: "b", Envelope: "e"}, Owner: "org:a", Run: run,
		Relation: rqv1.RelationOwn, Role: rqv1.RoleActive, GPUs: 8, Rate: budget.FullRate, Start: noon, Flavor: flavor,
		Node: node})
}

// holds has a fixed Run hold all GPUs of some nodes.
func (s *scene) holds(run string, nodes ...string) {
	t := resolver.Candidate{Run: rqv1.NamespacedName{Namespace: "ns", Name: run}, Owner: rqv1.Owner("org:" + run),
		Ticket: true}
	for _, node := range nodes {
		t.Rest = append(t.Rest, resolver.Holding{Node: node, GPUs: 8})
		s.Fleet.Take(node, 8)
	}
	s.candidates = append(s.candidates, t)
}

// ends has what a Run holds be free at an instant.
func (s *scene) ends(run int, after time.Duration) {
	s.Releases = append(s.Releases, forecast.Release{At: noon.Add(after), Holds: s.candidates[run].Rest})
}

// leaves has what a Run holds be on its way out.
func (s *scene) leaves(run int, after time.Duration) {
	s.ends(run, after)
	s.Releases[len(s.Releases)-1].Leaving = true
}

func ask(pods int) forecast.Ask {
	a := forecast.Ask{Demand: plan.Demand{Owner: "org:a", Flavor: flavor, GPUsPerPod: 8, Groups: 1, PodsPerGroup: pods,
		Confined: true}}
	for i := range pods {
		a.Missing = append(a.Missing, plan.Missing{Part: rank.Part{Index: i}})
	}
	return a
}

func tell(p *forecast.Promise, r *plan.Refusal) string {
	if p == nil {
		return "no date: " + string(r.Reason)
	}
	text := fmt.Sprintf("+%s %s, short by %d in %s, on", p.At.Sub(noon), p.Confidence, p.Slice.Deficit, p.Slice.Scope)
	for _, h := range p.Nodes {
		text += fmt.Sprintf(" %s:%d", h.Node, h.GPUs)
	}
	for _, c := range p.Conflicts {
		text += fmt.Sprintf("; %s %s %s", c.Action, c.Run.Name, c.Probability)
	}
	return text
}

func TestEarliest(t *testing.T) {
	soon, tomorrow := metav1.NewTime(noon.Add(10*time.Minute)), metav1.NewTime(noon.Add(12*time.Hour))
	for name, test := range map[string]struct {
		scene func() *scene
		pods  int
		want  string
	}{
		"a window opens": {func() *scene { return newScene(64, &tomorrow, 4) }, 4,
			"+12h0m10s window-aligned, short by 0 in region=west,fabric.domain=A, on A0:8 A1:8 A2:8 A3:8"},
		"a window opens onto a full fleet": {func() *scene {
			s := newScene(64, &tomorrow, 4)
			s.holds("x", "A0", "A1")
			s.holds("y", "A2")
			return s
		}, 4, "+12h0m10s window-aligned, short by 24 in region=west,fabric.domain=A, on A0:8 A1:8 A2:8 A3:8; " +
			"Lottery x 1; Lottery y 1"},
		"a window opens onto a fleet that is full until later": {func() *scene {
			s := newScene(64, &tomorrow, 2)
			s.holds("x", "A0", "A1")
			s.ends(0, 13*time.Hour)
			return s
		}, 2, "+12h0m10s window-aligned, short by 16 in region=west,fabric.domain=A, on A0:8 A1:8; Lottery x 1"},
		"a Run ends before others may be cut": {func() *scene {
			s := newScene(64, nil, 2)
			s.holds("x", "A0", "A1")
			s.ends(0, 5*time.Minute)
			return s
		}, 2, "+5m0s known-release, short by 16 in region=west,fabric.domain=A, on A0:8 A1:8"},
		"a Run that ends too late is cut": {func() *scene {
			s := newScene(64, nil, 2)
			s.holds("x", "A0", "A1")
			s.ends(0, 50*time.Minute)
			return s
		}, 2, "+15m0s conservative, short by 16 in region=west,fabric.domain=A, on A0:8 A1:8; Lottery x 1"},
		"nobody is cut while what leaves would do": {func() *scene {
			s := newScene(64, nil, 3)
			s.NotBefore = noon.Add(-time.Minute)
			s.holds("x", "A0", "A1")
			s.holds("y", "A2")
			s.leaves(0, 40*time.Second)
			return s
		}, 2, "+40s known-release, short by 16 in region=west,fabric.domain=A, on A0:8 A1:8"},
		"nor when it leaves after others might be cut": {func() *scene {
			s := newScene(64, nil, 2)
			s.holds("x", "A0", "A1")
			s.leaves(0, 16*time.Minute)
			return s
		}, 2, "+16m0s known-release, short by 16 in region=west,fabric.domain=A, on A0:8 A1:8"},
		"what leaves would not do": {func() *scene {
			s := newScene(64, nil, 2)
			s.NotBefore = noon.Add(-time.Minute)
			s.holds("x", "A0")
			s.holds("y", "A1")
			s.leaves(0, 40*time.Second)
			return s
		}, 2, "+0s conservative, short by 16 in region=west,fabric.domain=A, on A0:8 A1:8; Lottery x 1; Lottery y 1"},
		"what leaves would do with a Run that ends by itself, which is not waited for": {func() *scene {
			s := newScene(64, nil, 2)
			s.NotBefore = noon.Add(-time.Minute)
			s.holds("x", "A0")
			s.holds("y", "A1")
			s.leaves(0, 40*time.Second)
			s.ends(1, 30*time.Second)
			return s
		}, 2, "+0s conservative, short by 16 in region=west,fabric.domain=A, on A0:8 A1:8; Lottery x 1; Lottery y 1"},
		"another Run takes what leaves": {func() *scene {
			s := newScene(64, nil, 2)
			s.NotBefore = noon.Add(-time.Minute)
			s.holds("x", "A0", "A1")
			s.leaves(0, 40*time.Second)
			s.Ahead = []forecast.Ahead{{Run: rqv1.NamespacedName{Name: "first"}, Owner: "org:b", At: noon.Add(40 * time.Second),
				Shielded: noon.Add(30 * time.Minute), Holds: []resolver.Holding{{Node: "A0", GPUs: 8}}}}
			s.candidates = nil
			s.Shields = []time.Time{noon.Add(30 * time.Minute)}
			return s
		}, 2, "+30m0s conservative, short by 8 in region=west,fabric.domain=A, on A0:8 A1:8; Lottery first 1"},
		"the emptiest domain": {func() *scene {
			s := newScene(64, nil, 3, 3)
			s.holds("x", "A0", "A1", "A2")
			s.holds("y", "B0", "B1")
			return s
		}, 3, "+15m0s conservative, short by 16 in region=west,fabric.domain=B, on B0:8 B1:8 B2:8; Lottery y 1"},
		"nobody to cut": {func() *scene {
			s := newScene(64, nil, 2)
			s.Fleet.Take("A0", 8)
			return s
		}, 2, "no date: InsufficientGPUs"},
		"nobody to cut, but a later end": {func() *scene {
			s := newScene(64, nil, 2)
			s.holds("x", "A0", "A1")
			s.ends(0, 50*time.Minute)
			s.candidates = nil
			return s
		}, 2, "+50m0s known-release, short by 16 in region=west,fabric.domain=A, on A0:8 A1:8"},
		"what ends before those who leave": {func() *scene {
			s := newScene(64, nil, 2)
			s.holds("x", "A0")
			s.holds("y", "A1")
			s.leaves(0, 40*time.Minute)
			s.ends(1, 20*time.Minute)
			return s
		}, 1, "+20m0s known-release, short by 8 in region=west,fabric.domain=A, on A1:8"},
		"a window that closes before others may be cut": {func() *scene {
			s := newScene(64, nil, 1)
			s.setBudget(rqv1.Envelope{Name: "e", Flavor: flavor, Concurrency: 64, End: &soon})
			s.holds("x", "A0")
			return s
		}, 1, "no date: InsufficientGPUs"},
		"GPU-hours that somebody else spends": {func() *scene {
			s := newScene(64, nil, 3)
			hours := int64(20)
			s.setBudget(rqv1.Envelope{Name: "e", Flavor: flavor, Concurrency: 64, MaxGPUHours: &hours})
			s.holds("x", "A0")
			s.holds("y", "A1")
			s.holds("z", "A2")
			s.pays("z", "A2")
			s.ends(0, 5*time.Minute)
			s.ends(1, 10*time.Hour)
			s.candidates = nil
			return s
		}, 1, "+5m0s known-release, short by 8 in region=west,fabric.domain=A, on A0:8"},
		"somebody ends when a window opens": {func() *scene {
			s := newScene(64, &tomorrow, 2)
			s.holds("x", "A0")
			s.holds("y", "A1")
			s.ends(0, 12*time.Hour+10*time.Second)
			return s
		}, 1, "+12h0m10s known-release, short by 8 in region=west,fabric.domain=A, on A0:8"},
		"somebody leaves after a window opens": {func() *scene {
			s := newScene(64, &tomorrow, 2)
			s.holds("x", "A0")
			s.holds("y", "A1")
			s.leaves(0, 13*time.Hour)
			return s
		}, 1, "+13h0m0s known-release, short by 8 in region=west,fabric.domain=A, on A0:8"},
		"two Reservations for when the window opens": {func() *scene {
			s := newScene(64, &tomorrow, 2)
			for _, node := range []string{"A0", "A1"} {
				s.Ahead = append(s.Ahead, forecast.Ahead{Run: rqv1.NamespacedName{Name: "for " + node},
					Owner: "org:b", At: tomorrow.Add(10 * time.Second), Shielded: tomorrow.Add(time.Hour),
					Holds: []resolver.Holding{{Node: node, GPUs: 8}}})
			}
			return s
		}, 1, "no date: WindowClosed"},
		"nobody pays": {func() *scene { return newScene(8, nil, 2) }, 2, "no date: InsufficientBudget"},
		"never fits":  {func() *scene { return newScene(64, nil, 2) }, 3, "no date: NeverFits"},
		"behind another Reservation": {func() *scene {
			s := newScene(64, nil, 2)
			s.holds("x", "A0", "A1")
			s.ends(0, 5*time.Minute)
			s.candidates = nil
			s.Ahead = []forecast.Ahead{{Run: rqv1.NamespacedName{Name: "first"}, Owner: "org:b", At: noon.Add(5 * time.Minute),
				Shielded: noon.Add(30 * time.Minute), Holds: []resolver.Holding{{Node: "A0", GPUs: 8}}}}
			s.Shields = []time.Time{noon.Add(30 * time.Minute)}
			return s
		}, 2, "+30m0s conservative, short by 8 in region=west,fabric.domain=A, on A0:8 A1:8; Lottery first 1"},
	} {
		s := test.scene()
		before := s.Fleet.Domains()
		if diff := cmp.Diff(test.want, tell(forecast.Earliest(s.State, ask(test.pods)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(before, s.Fleet.Domains()); diff != "" {
			t.Errorf("%s: the fleet is not as it was:\n%s", name, diff)
		}
	}
}

// TestADateOfAWindowStaysOne: once a window has opened, a date that was told for that is still one when it has come, a
// moment ago too.
func TestADateOfAWindowStaysOne(t *testing.T) {
	for _, told := range []time.Duration{-2 * time.Millisecond, 0, 9 * time.Second} {
		s := newScene(64, nil, 2)
		s.holds("x", "A0", "A1")
		s.NotBefore, s.Aligned = noon.Add(told), noon.Add(told)
		p, refusal := forecast.Earliest(s.State, ask(2))
		if refusal != nil || p.Confidence != rqv1.ConfidenceWindowAligned {
			t.Errorf("told for %s from now, it is promised %s", told, tell(p, refusal))
		}
	}
}

// TestMoneyIsKeptFromSomeTimeOn: what fits before another's money begins to be kept, and not after, has a date before.
func TestMoneyIsKeptFromSomeTimeOn(t *testing.T) {
	for _, lasts := range []time.Duration{0, 30 * time.Hour} {
		moneyIsKeptFromSomeTimeOn(t, lasts)
	}
}

func moneyIsKeptFromSomeTimeOn(t *testing.T, lasts time.Duration) {
	t.Helper()
	s := newScene(8, nil, 2)
	s.holds("first", "A0")
	s.pays("first", "A0")
	s.holds("second", "A1")
	for _, hours := range []int{1, 2, 3} { // others give nothing back that is of use
		s.Releases = append(s.Releases, forecast.Release{At: noon.Add(time.Duration(hours) * time.Hour)})
	}
	s.ends(0, 4*time.Hour)
	s.Releases[3].Leases = []string{"first"}
	s.ends(1, 20*time.Hour)
	s.candidates = nil
	s.MoneyHorizon = 24 * time.Hour
	s.Owed = map[budget.Key][]budget.Owed{{Budget: "b", Envelope: "e"}: {{Run: "ns/older", At: noon.Add(40 * time.Hour),
		GPUs: 8, Rate: budget.FullRate, Relation: rqv1.RelationOwn}}}
	young := ask(1)
	young.Claim.MaxDuration = lasts
	p, refusal := forecast.Earliest(s.State, young)
	if refusal != nil || !p.At.Equal(noon.Add(4*time.Hour)) {
		t.Errorf("with a maxDuration of %s it is promised %s", lasts, tell(p, refusal))
	}
}

// TestWhatIsKeptIsGivenBackOnce: what is kept for lost ranks of a Run is free by itself at some time, or with all of it
// if that ends before, or goes for another.
func TestWhatIsKeptIsGivenBackOnce(t *testing.T) {
	const lapses = 10 * time.Minute
	for name, test := range map[string]struct {
		ends, goes time.Duration
		pods       int
		want       string
	}{
		"it ends after that":             {20 * time.Minute, 0, 2, "+20m0s known-release"},
		"it ends before":                 {5 * time.Minute, 0, 2, "+5m0s known-release"},
		"it ends at that instant":        {lapses, 0, 2, "+10m0s known-release"},
		"it goes on":                     {0, 0, 1, "+10m0s known-release"},
		"it goes for another after that": {0, 12 * time.Minute, 1, "+10m0s known-release"},
		"it goes for another before":     {0, 5 * time.Minute, 1, "+5m0.000000001s known-release"},
	} {
		s := newScene(64, nil, 3)
		s.holds("x", "A0", "A1")
		s.holds("y", "A2")
		x, room := s.candidates[0], s.candidates[0].Rest[1:]
		s.candidates = nil
		s.Releases = []forecast.Release{{At: noon.Add(lapses), Run: x.Run, Kept: true, Holds: room}}
		all := func(at time.Duration) forecast.Release {
			if r := (forecast.Release{At: noon.Add(at), Run: x.Run, Holds: x.Rest}); at < lapses {
				return r
			}
			return forecast.Release{At: noon.Add(at), Run: x.Run, Holds: x.Rest[:1]}
		}
		if test.ends > 0 {
			s.Releases = append(s.Releases, all(test.ends))
		}
		if test.goes > 0 {
			s.Ahead = []forecast.Ahead{{Run: rqv1.NamespacedName{Name: "ahead"}, At: noon.Add(test.goes), Younger: true,
				Spared: true, Ousts: []forecast.Release{all(test.goes)}, Holds: x.Rest[:1]}}
		}
		if got := tell(forecast.Earliest(s.State, ask(test.pods))); !strings.HasPrefix(got, test.want+",") {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
		if got := tell(forecast.Earliest(s.State, ask(test.pods+1))); !strings.HasPrefix(got, "no date") {
			t.Errorf("%s: %s for more than there is", name, got)
		}
	}
}
