package book

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/lane"
)

// question is what other scheduling rules are asked about a gang.
type question struct {
	// pending says that they are being asked, for which time, and noticed when that was first seen; zero before.
	pending bool
	asked   int
	noticed time.Time
	// queues says that nobody has been given it to ask yet: others are asked about before.
	queues bool
}

// ask notes that it is asked.
func (q *question) ask() {
	q.pending, q.noticed = true, time.Time{}
	q.asked++
}

// longestAsked is how long an answer is waited for: whoever asks has one within seconds, unless nobody asks. A Run is
// not looked at while it is asked about its gang's places.
const longestAsked = 10 * time.Second

// late reports whether nobody has answered, and notes when it is first seen that an answer is waited for.
func (q *question) late(now time.Time) bool {
	if !q.pending || q.queues {
		return false
	}
	if q.noticed.IsZero() {
		q.noticed = now
	}
	return !now.Before(q.noticed.Add(longestAsked))
}

// next tells when it ends if nobody answers.
func (q *question) next(e *earliest, now time.Time) {
	switch {
	case !q.pending || q.queues:
	case q.noticed.IsZero():
		e.by(now)
	default:
		e.by(q.noticed.Add(longestAsked))
	}
}

// unanswered ends questions about gangs that nobody has answered. What is not known is no for ranks in the places of
// spares and for cuts; of a start the pods' own cycles find it out, and about ranks that are to move it is asked again.
func (b *Book) unanswered(now time.Time) {
	var late []*gang
	for run := range b.roster.asking {
		g := b.roster.gangs[run]
		if g == nil {
			continue
		}
		places, moves := g.check.late(now), g.inquiry.late(now)
		if places || moves {
			late = append(late, g)
		}
	}
	slices.SortFunc(late, byAge)
	for _, g := range late {
		if g.check.late(now) {
			b.unanswer(g, now)
		}
		if g.run != nil && g.inquiry.late(now) {
			b.drainer.conclude(g, nil, false, now)
			b.mail.reconcile(keyOf(g.run), lane.Cut)
		}
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
		b.turns.refute(g, &Check{Run: g.run.UID, Cuts: true, Unsure: true}, nil, true, now)
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
	for run := range b.roster.asking {
		if g := b.roster.gangs[run]; g != nil {
			g.check.next(e, now)
			g.inquiry.next(e, now)
		}
	}
}
