package book_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
)

// replayed asserts that a decision follows from what is written down of an observation.
func (w *world) replayed(o lifecycle.Observed, d lifecycle.Decision) {
	text, err := json.Marshal(o)
	if err != nil {
		w.t.Fatal(err)
	}
	again := lifecycle.Observed{}
	if err := json.Unmarshal(text, &again); err != nil {
		w.t.Fatal(err)
	}
	want, _ := json.Marshal(d)
	got, _ := json.Marshal(lifecycle.Decide(again))
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		w.t.Fatalf("what is decided on is not all that is observed: %s\n%s", diff, text)
	}
}

// Every decision in a story with a loss, a swap and a requeue can be made again from its observation as JSON.
func TestDecisionsCanBeReplayed(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.replays = true
		s.stuckVictim(3)
		s.submitWithSpares("run2", "org:a", 1, 1, 8, 0, opportunistic)
		s.during(noticePeriod)
		s.work()
		s.RemoveNode(s.on("run1-0"))
		for range 3 {
			s.during(overstay)
			s.work()
		}
	})
}
