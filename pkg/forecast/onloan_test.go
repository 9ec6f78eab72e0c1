package forecast_test

import (
	"testing"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// lending is a full domain of three nodes, two of which a Run has grown into beyond its total.
func lending() *scene {
	s := newScene(64, nil, 3)
	s.holds("x", "A0", "A1", "A2")
	x := &s.candidates[0]
	x.Rest = x.Rest[:1]
	x.Steps = []resolver.Step{{Width: 16, Loan: true, Holds: []resolver.Holding{{Node: "A2", GPUs: 8}}},
		{Width: 8, Loan: true, Holds: []resolver.Holding{{Node: "A1", GPUs: 8}}}}
	s.Loans = func(map[string]bool, time.Time) []resolver.Candidate { return resolver.Loans(s.candidates) }
	s.Notice = 30 * time.Second
	return s
}

// promised promises another Run a node from an instant on.
func (s *scene) promised(node string, at time.Time, younger bool) {
	s.Ahead = append(s.Ahead, forecast.Ahead{At: at, Shielded: at.Add(time.Hour), Younger: younger,
		Holds: []resolver.Holding{{Node: node, GPUs: 8}}})
}

// TestWhatIsOnLoanIsHadAtOnce, but for what is promised to older Runs whose dates have come, and where it is needed.
func TestWhatIsOnLoanIsHadAtOnce(t *testing.T) {
	const scope = " in region=west,fabric.domain=A, on"
	for name, test := range map[string]struct {
		change func(s *scene)
		pods   int
		want   string
	}{
		"a step": {nil, 1, "+0s conservative, short by 8" + scope + " A1:8; Return x 1"},
		"both":   {nil, 2, "+0s conservative, short by 16" + scope + " A1:8 A2:8; Return x 1"},
		"more than that": {nil, 3,
			"+15m0s conservative, short by 24" + scope + " A0:8 A1:8 A2:8; Lottery x 1"},
		"one is promised to an older Run": {func(s *scene) { s.promised("A2", noon, false) }, 1,
			"+0s conservative, short by 8" + scope + " A1:8; Return x 1"},
		"one was promised to an older Run": {func(s *scene) { s.promised("A2", noon.Add(-time.Second), false) }, 2,
			"+15m0s conservative, short by 16" + scope + " A0:8 A1:8; Lottery x 1"},
		"one is promised to a younger Run": {func(s *scene) { s.promised("A2", noon, true) }, 2,
			"+0s conservative, short by 16" + scope + " A1:8 A2:8; Return x 1"},
		"one is promised for later": {func(s *scene) { s.promised("A2", noon.Add(time.Minute), false) }, 2,
			"+0s conservative, short by 16" + scope + " A1:8 A2:8; Return x 1"},
		"what leaves would do": {func(s *scene) {
			s.Releases = append(s.Releases, forecast.Release{At: noon.Add(20 * time.Second), Leaving: true,
				Holds: []resolver.Holding{{Node: "A0", GPUs: 8}}})
		}, 1, "+20s known-release, short by 8" + scope + " A0:8"},
		"not again so soon": {func(s *scene) { s.Loans = nil }, 1,
			"+15m0s conservative, short by 8" + scope + " A1:8; Return x 1"},
		"its date has come": {func(s *scene) { s.NotBefore = noon }, 1,
			"+0s conservative, short by 8" + scope + " A1:8; Return x 1"},
		"its date has come, and an older Run's before": {func(s *scene) {
			s.NotBefore = noon
			s.promised("A1", noon.Add(-time.Minute), false)
			s.promised("A2", noon.Add(-time.Minute), false)
		}, 1, "+0s conservative, short by 8" + scope + " A0:8; Lottery x 1"},
		"its date has come, and those of older Runs that need all": {func(s *scene) {
			s.NotBefore = noon
			for _, node := range []string{"A0", "A1", "A2"} {
				s.promised(node, noon.Add(-2*time.Hour), false)
			}
		}, 1, "no date: InsufficientGPUs"},
	} {
		s := lending()
		if test.change != nil {
			test.change(s)
		}
		p, refusal := forecast.Earliest(s.State, ask(test.pods))
		if got := tell(p, refusal); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, test.want)
		}
		if p == nil || !p.Returns() {
			continue
		}
		_, assignments, ok := forecast.Activate(s.State, ask(test.pods), p.Slice.Domains, p.Conflicts, [32]byte{})
		if !ok || len(assignments) != test.pods {
			t.Errorf("%s: promised %v, and starts at %+v (%v)", name, p.Nodes, assignments, ok)
		}
	}
}
