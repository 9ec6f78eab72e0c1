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

func about(name, reason, note string) news.Fact {
	return news.Fact{Regarding: corev1.ObjectReference{Kind: "Run", Name: name}, Type: "Normal", Reason: reason,
		Note: note}
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
			out = append(out, step{at: i, say: fmt.Sprint("n", i), writes: fmt.Sprintf("n%d ×1", i)})
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
		"very many, each at once": many(1, 50),
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
				if e := d.Tell(about("a", s.of, s.say), now); e != nil {
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

// TestNothingIsLeftOut tells things at random: what is told for the first time is written at once and as of then, what
// is told again a minute later at most and as of when it was told last; all is counted, no two events have one ID, and
// a thing is not written more often than it was told.
func TestNothingIsLeftOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, now := news.NewDesk(), noon
		told, last, writes := map[news.Fact]int32{}, map[news.Fact]time.Time{}, map[news.Fact]int32{}
		written, ids := map[int64]*news.Event{}, map[int64]news.Fact{}
		note := func(e *news.Event) {
			if was, ok := ids[e.ID]; ok && was != e.Fact {
				t.Fatalf("%v and %v have one ID", was, e.Fact)
			}
			if !e.Last.Equal(last[e.Fact]) {
				t.Errorf("%v was told at %s, and is written as of %s", e.Fact, last[e.Fact], e.Last)
			}
			if late := now.Sub(e.Last); late > time.Minute+3*time.Second {
				t.Errorf("%v is written %s late", e.Fact, late)
			}
			ids[e.ID], written[e.ID] = e.Fact, e
			if writes[e.Fact]++; writes[e.Fact] > told[e.Fact] {
				t.Errorf("%v is written %d times, and was told %d times", e.Fact, writes[e.Fact], told[e.Fact])
			}
		}
		pass := func(by time.Duration) {
			now = now.Add(by)
			for _, e := range d.Due(now) {
				note(e)
			}
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			pass(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			fact := about(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "of"), "Pending",
				fmt.Sprint("n", rapid.IntRange(0, 15).Draw(t, "note")))
			told[fact]++
			last[fact] = now
			if e := d.Tell(fact, now); e != nil {
				note(e)
			} else if told[fact] == 1 {
				t.Errorf("%v is not written at once", fact)
			}
		}
		for range 60 {
			pass(time.Second)
		}
		count := map[news.Fact]int32{}
		for _, e := range written {
			count[e.Fact] += e.Count
		}
		if diff := cmp.Diff(told, count); diff != "" {
			t.Errorf("counted (-told +written):\n%s", diff)
		}
	})
}
