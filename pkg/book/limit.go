package book

import (
	"cmp"
	"fmt"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/brake"
)

// withinLimit reports whether the cuts of an activation are within what may be cut in an hour (R36). If not, the gang waits until they
// are; one that needs more than is ever allowed waits until nobody was cut within the hour. Whoever waits for that longer comes first:
// otherwise those that need few cuts would use up every hour, and those that need many would never start.
func (b *Book) withinLimit(g *gang, cuts []rqv1.Cut, now time.Time) bool {
	need := len(brake.Runs(cuts))
	if b.args.CutsPerHour == nil || need == 0 {
		return true
	}
	limit, made := int(*b.args.CutsPerHour), b.cutsWithin(now)
	over := min(len(made)+need-limit, len(made))
	first := b.firstInLine(g, now)
	r := restraint{limited: true}
	switch {
	case limit == 0:
		r.until, r.why = now.Add(cutWindow), fmt.Sprintf("%d Runs are to be cut for it, and cutsPerHour (0) allows none (R36)", need)
	case first != nil:
		r.until = latest(first.restraint.until, now.Add(soon))
		r.why = fmt.Sprintf("%d Runs are to be cut for it, and cutsPerHour (%d) is for Run %s first, whose date came before (R36)",
			need, limit, keyOf(first.run))
	case over <= 0:
		return true
	default:
		r.until = made[over-1].Add(cutWindow)
		r.why = fmt.Sprintf("%d Runs are to be cut for it, and cutsPerHour (%d) does not allow so many before %s (R36)",
			need, limit, r.until.UTC().Format(time.RFC3339))
	}
	g.restraint = r
	return false
}

// firstInLine returns the gang that waits for the limit of cuts and whose date came first; nil when none comes before a gang.
func (b *Book) firstInLine(g *gang, now time.Time) *gang {
	first := g
	for _, other := range b.waiting.gangs {
		p := other.promise
		if other == g || !other.restraint.limited || p == nil || !p.Cuts || p.At.After(now) || !other.waits() || other.unpaid || !b.committedTo(other) {
			continue
		}
		if cmp.Or(other.dateCame().Compare(first.dateCame()), byAge(other, first)) < 0 {
			first = other
		}
	}
	if first == g {
		return nil
	}
	return first
}

// dateCame returns the date of a gang's Reservation, which stands still once it has come.
func (g *gang) dateCame() time.Time { return g.reservation.Spec.EarliestStart.Time }
