package brake

import (
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

var (
	noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	word = Word{By: "ada", At: noon, Because: "a paper is due"}
	big  = types.NamespacedName{Namespace: "team", Name: "big.v2-r0"}
)

// apply is what a merge patch does.
func apply(data map[string]string, change map[string]*string) map[string]string {
	out := maps.Clone(data)
	for key, value := range change {
		if delete(out, key); value != nil {
			out[key] = *value
		}
	}
	return out
}

func TestPauseAndResume(t *testing.T) {
	s := Parse(nil)
	if s.Says() != "" {
		t.Errorf("without a ConfigMap: %s", s.Says())
	}
	data := apply(map[string]string{"note": "keep"}, Pause(word))
	s = Parse(data)
	if want := "cuts are paused by ada at 2026-03-01T12:00:00Z: a paper is due"; s.Says() != want {
		t.Errorf("paused: %q", s.Says())
	}
	data = apply(data, Resume())
	if s = Parse(data); s.Says() != "" || len(data) != 1 {
		t.Errorf("resumed: %q %v", s.Says(), data)
	}
}

func TestCallOff(t *testing.T) {
	change, err := Off(big, CallOff{UID: "u1", Word: word})
	if err != nil {
		t.Fatal(err)
	}
	s := Parse(apply(map[string]string{}, change))
	if got, off := s.Off(big, "u1"); !off || got != word || s.Says() != "" {
		t.Errorf("called off: %v %v %q", got, off, s.Says())
	}
	if _, off := s.Off(big, "u2"); off {
		t.Errorf("another Reservation of the same name is called off")
	}
	s = Parse(map[string]string{KeyOf(big): "{}"})
	if _, off := s.Off(big, "u2"); !off {
		t.Errorf("without a UID it is not called off")
	}
}

// TestWhatDoesNotParseBrakes says what was meant to be a word and is none.
func TestWhatDoesNotParseBrakes(t *testing.T) {
	for key, value := range map[string]string{
		"paused":               "yes please",
		"call-off.team":        "{}",
		"call-off..big-r0":     "{}",
		"call-off.team.big-r0": "off",
	} {
		s := Parse(map[string]string{key: value})
		if says := s.Says(); !strings.Contains(says, key) {
			t.Errorf("%s=%q: %q", key, value, says)
		}
	}
	if s := Parse(map[string]string{"paused": "false", "pausedAt": "yesterday"}); s.Says() != "" {
		t.Errorf("a time that is none: %q", s.Says())
	}
}
