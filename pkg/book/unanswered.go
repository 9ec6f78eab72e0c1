package book

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/lane"
)

// longestAsked is how long what other rules say of a gang's places is waited for: whoever asks them has an answer
// within seconds, unless nobody asks. The gang's Run is not looked at meanwhile.
const longestAsked = 10 * time.Second

// unanswered ends questions about gangs that nobody has answered. What is not known is no for ranks in the places of
// spares and for cuts; of a start the pods' own cycles find it out.
func (b *Book) unanswered(now time.Time) {
	var late []*gang
	for run := range b.places.asking {
		switch g := b.roster.gangs[run]; {
		case g == nil || !g.check.pending:
		case g.check.since.IsZero():
			g.check.since = now
		case !now.Before(g.check.since.Add(longestAsked)):
			late = append(late, g)
		}
	}
	slices.SortFunc(late, byAge)
	for _, g := range late {
		b.unanswer(g, now)
	}
}

// unanswer ends the question about one gang.
func (b *Book) unanswer(g *gang, now time.Time) {
	g.check.pending, g.check.again = false, false
	switch {
	case g.run == nil:
		return
	case g.asksForSeats():
		c := &Check{Run: g.run.UID, Leaving: map[string][]types.UID{}, Seats: true}
		b.places.seatsToAsk(g, c)
		var unsure []Turning
		for _, place := range c.Places {
			unsure = append(unsure, Turning{Pod: place.Pod.UID, Node: place.Node, Why: unsaid})
		}
		b.places.concludeSeats(g, c, unsure)
	case g.activation != nil:
		b.turns.refute(g, nil, nil, true, now)
	default:
		g.check.trust(now)
		b.places.makeRoom(g)
	}
	b.mail.reconcile(keyOf(g.run), lane.Cut) // it was not looked at meanwhile
}

// unsaid is why a rank does not go where it is not known whether rules accept it.
const unsaid = "its rules do not say whether they accept the rank"

// nextUnanswered tells when the next question ends that nobody answers.
func (b *Book) nextUnanswered(e *earliest, now time.Time) {
	for run := range b.places.asking {
		g := b.roster.gangs[run]
		if g == nil || !g.check.pending {
			continue
		}
		if g.check.since.IsZero() {
			e.by(now)
		} else {
			e.by(g.check.since.Add(longestAsked))
		}
	}
}
