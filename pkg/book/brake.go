package book

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/brake"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
)

// braked reports whether nobody may be cut for a gang now: cuts are paused, or too many have been made.
func (a *agenda) braked(g *gang, now time.Time) bool {
	return a.brake.Says() != "" || now.Before(g.restraint.until)
}

// brakeOn returns a sentence that says why nobody is cut for a gang that waits; empty when that is not so.
func (a *agenda) brakeOn(g *gang) string {
	if says := a.brake.Says(); says != "" && g.promise != nil && g.promise.Cuts && !g.promise.Returns() {
		return says + "; once the date has come, the Run waits until cuts are resumed"
	}
	return g.restraint.why
}

// calledOffBy returns by which word the activation of a gang is called off; nil when it is not.
func (a *agenda) calledOffBy(g *gang) *brake.Word {
	if g.reservation == nil {
		return nil
	}
	if word, off := a.brake.Off(keyOf(g.reservation), g.reservation.UID); off {
		return &word
	}
	return nil
}

// dateless reports whether a gang gets no date, since its activation was called off a short while ago. Its lead begins
// anew after that.
func (a *agenda) dateless(g *gang, now time.Time) bool {
	at, word := a.reservations.calledOff(g.run.UID)
	until := at.Add(a.args.ReservationLead.Duration)
	switch {
	case !at.IsZero() && now.Before(until):
		g.since, g.looked, g.seen, g.woken, g.ripe = until, now, a.waiting.epoch, false, false
		g.restraint = restraint{until: until, why: fmt.Sprintf("its activation was %s; it gets no new date before %s", word,
			until.UTC().Format(time.RFC3339))}
		a.setPromise(g, nil)
		return true
	case !now.Before(g.restraint.until):
		g.restraint = restraint{}
	}
	return false
}

// stand has the date of a gang stand still that has come and may not be acted upon.
func (a *agenda) stand(g *gang, p *forecast.Promise, now time.Time) {
	if was := g.reservation.Spec.EarliestStart.Time; was.Before(now) {
		p.At = was
	}
	a.setPromise(g, p)
}

// firstInLine returns the gang that waits for the limit of cuts and whose date came first; nil when none comes before a
// gang.
func (a *agenda) firstInLine(g *gang, now time.Time) *gang {
	first := g
	for _, other := range a.waiting.gangs {
		p := other.promise
		if other == g || !other.restraint.limited || p == nil || !p.Cuts || p.Returns() || p.At.After(now) ||
			!other.waits() || other.unpaid || !a.committedTo(other) {
			continue
		}
		if cmp.Or(other.dateCame().Compare(first.dateCame()), byPlace(other, first)) < 0 {
			first = other
		}
	}
	if first == g {
		return nil
	}
	return first
}

// cutsWithin returns when Runs were cut within the last hour, in order: as Reservations record it, so that a restart
// changes nothing, and as it has been decided and is being published.
func (a *agenda) cutsWithin(now time.Time) []time.Time {
	var out []time.Time
	note := func(at time.Time, cuts []rqv1.Cut) {
		if now.Sub(at) < cutWindow {
			for range brake.Runs(cuts) {
				out = append(out, at)
			}
		}
	}
	for _, r := range a.reservations.since(now.Add(-cutWindow)) {
		note(r.Status.ActivatedAt.Time, r.Status.Cuts)
	}
	for g := range a.roster.living {
		decided := g.activation != nil && !g.activation.Failed
		if decided && (g.reservation == nil || len(g.reservation.Status.Cuts) == 0) {
			note(g.activation.At, g.activation.Cuts)
		}
	}
	slices.SortFunc(out, time.Time.Compare)
	return out
}

// withinLimit reports whether the cuts of an activation are within what may be cut in an hour (R36). If not, the gang
// waits until they are; one that needs more than is ever allowed waits until nobody was cut within the hour. Whoever
// waits for that longer comes first: otherwise those that need few cuts would use up every hour, and those that need
// many would never start.
func (a *agenda) withinLimit(g *gang, cuts []rqv1.Cut, now time.Time) bool {
	need := len(brake.Runs(cuts))
	if a.args.CutsPerHour == nil || need == 0 {
		return true
	}
	limit, made := int(*a.args.CutsPerHour), a.cutsWithin(now)
	over := min(len(made)+need-limit, len(made))
	first := a.firstInLine(g, now)
	r := restraint{limited: true}
	switch {
	case limit == 0:
		r.until, r.why = now.Add(cutWindow),
			fmt.Sprintf("%d Runs would be cut for it, and cutsPerHour (0) allows none", need)
	case first != nil:
		r.until = latest(first.restraint.until, now.Add(soon))
		r.why = fmt.Sprintf("%d Runs would be cut for it, and cutsPerHour (%d) goes to Run %s first, whose date came earlier",
			need, limit, keyOf(first.run))
	case over <= 0:
		return true
	default:
		r.until = made[over-1].Add(cutWindow)
		r.why = fmt.Sprintf("%d Runs would be cut for it, and cutsPerHour (%d) does not allow so many before %s",
			need, limit, r.until.UTC().Format(time.RFC3339))
	}
	g.restraint = r
	return false
}

// cutWindow is the time over which cuts are counted (R36).
const cutWindow = time.Hour
