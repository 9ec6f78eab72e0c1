package news_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/davidlangworthy/jobtree/pkg/news"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func about(name, reason string) news.Topic {
	return news.Topic{Regarding: corev1.ObjectReference{Kind: "Run", Name: name}, Type: "Normal", Reason: reason}
}

// TestWhatIsWritten tells things of Run a, at seconds after noon.
func TestWhatIsWritten(t *testing.T) {
	type step struct {
		at     int
		of     string // the reason, Pending if there is none
		say    string // nothing: what is due is asked for
		writes string
	}
	many := func(from, to int) (out []step) {
		for i := from; i <= to; i++ {
			out = append(out, step{at: 1, say: fmt.Sprint("n", i), writes: fmt.Sprintf("n%d ×1", i)})
		}
		return out
	}
	for name, steps := range map[string][]step{
		"different things, each of them": {
			{say: "a", writes: "a ×1"}, {say: "b", writes: "b ×1"}, {of: "Failed", say: "a", writes: "a ×1"}, {at: 300}},
		"the same again: once at once, then once a minute": {
			{say: "a", writes: "a ×1"}, {at: 1, say: "a", writes: "a ×2"}, {at: 2, say: "a"}, {at: 3, say: "a"}, {at: 60},
			{at: 61, writes: "a ×4"}, {at: 62, say: "a"}, {at: 122, say: "a", writes: "a ×6"}, {at: 300}},
		"one and the other in turn": {
			{say: "a", writes: "a ×1"}, {say: "b", writes: "b ×1"}, {at: 1, say: "a", writes: "a ×2"},
			{at: 1, say: "b", writes: "b ×2"}, {at: 2, say: "a"}, {at: 3, say: "b"}, {at: 60},
			{at: 61, writes: "a ×3, b ×3"}},
		"the same much later": {
			{say: "a", writes: "a ×1"}, {at: 600, say: "a", writes: "a ×1"}},
		"the same later than that, forgotten": {
			{say: "a", writes: "a ×1"}, {at: 700}, {at: 701, say: "a", writes: "a ×1"}},
		"very many: the first alone, the others together": append(many(1, 10),
			step{at: 2, say: "n11"}, step{at: 3, say: "n12"}, step{at: 4, say: "n11"}, step{at: 4, say: "n3", writes: "n3 ×2"},
			step{at: 60}, step{at: 61, writes: "n11; n12 ×1"}, step{at: 62, say: "n13"}, step{at: 121, writes: "n13 ×1"},
			step{at: 300}),
	} {
		d := news.NewDesk()
		for i, s := range steps {
			now := noon.Add(time.Duration(s.at) * time.Second)
			var events []*news.Event
			if s.say == "" {
				events = d.Due(now)
			} else if s.of == "" {
				s.of = "Pending"
			}
			if s.say != "" {
				if e := d.Tell(about("a", s.of), s.say, now); e != nil {
					events = append(events, e)
				}
			}
			var got []string
			for _, e := range events {
				got = append(got, fmt.Sprintf("%s ×%d", e.Note, e.Count))
			}
			if diff := cmp.Diff(s.writes, strings.Join(got, ", ")); diff != "" {
				t.Errorf("%s: step %d (-want +got):\n%s", name, i, diff)
			}
		}
	}
}

// TestNothingIsLeftOut tells things at random: what was told is written within two minutes, as often as it was told
// unless it was told together with others, no two events have one ID, and no topic makes many writes a minute.
func TestNothingIsLeftOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, now := news.NewDesk(), noon
		told, written := map[string]int32{}, map[string]int32{}
		last, ids := map[int64]*news.Event{}, map[int64]string{}
		writes := 0
		note := func(e *news.Event) {
			key := e.Regarding.Name + "/" + e.Note
			if was, ok := ids[e.ID]; ok && was != key {
				t.Fatalf("%s and %s have one ID", was, key)
			}
			ids[e.ID], last[e.ID] = key, e
			writes++
		}
		steps := rapid.IntRange(1, 200).Draw(t, "steps")
		for range steps {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "of")
			text := fmt.Sprint("n", rapid.IntRange(0, 15).Draw(t, "note"))
			told[name+"/"+text]++
			if e := d.Tell(about(name, "Pending"), text, now); e != nil {
				note(e)
			}
			for _, e := range d.Due(now) {
				note(e)
			}
		}
		minutes := int(now.Sub(noon)/time.Minute) + 1
		for range 2 {
			now = now.Add(time.Minute)
			for _, e := range d.Due(now) {
				note(e)
			}
		}
		for _, e := range last {
			for _, text := range strings.Split(e.Note, "; ") {
				written[e.Regarding.Name+"/"+text] += e.Count
			}
		}
		for key, times := range told {
			if got := written[key]; got == 0 || got > times {
				t.Errorf("%s was told %d times, and %d are written", key, times, got)
			}
		}
		if most := 2 * (20 + 18*(minutes+2)); writes > most {
			t.Errorf("%d writes in %d minutes", writes, minutes)
		}
	})
}
