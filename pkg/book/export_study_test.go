package book

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Study begins to work out again when a Run starts, and returns what does that and what has it be promised; nil where
// nothing is to be worked out.
func (b *Book) Study(run types.UID, now time.Time) (workOut, end func()) {
	s := b.turns.begin(run, now)
	if s == nil {
		return nil, nil
	}
	return s.workOut, func() { b.turns.end(s, now) }
}

// Studies returns what a Run that waits is promised by the book itself, and by what is worked out beside it.
func (b *Book) Studies(run types.UID, now time.Time) (itself, beside any) {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	g := b.roster.gangs[run]
	if g == nil || g.sample() == nil || !b.agenda.worksOut(g) || g.activating() {
		return nil, nil
	}
	defer b.kept.lend(g)()
	var found [2]any
	for i := range found {
		s := b.future.future(g, g.sample(), now)
		if i == 1 {
			s.detach()
		}
		s.workOut()
		found[i] = []any{s.promise, s.byGPUsAlone, s.refusal}
	}
	return found[0], found[1]
}

// Stale returns the Run of which it is to be worked out next when it starts.
func (b *Book) Stale(now time.Time) []types.UID { return b.turns.stale(now, 1) }
