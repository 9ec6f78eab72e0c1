package forecast

import (
	"slices"
	"time"
)

// soonEnough is how long after the date at which others may be cut nobody is if what is known to come would do (R19).
const soonEnough = time.Minute

// soon returns the promise to start by what is known to come by an instant, from an event on, so that nobody is cut at
// another; nil if that would not do. Whom others cut later than that is not known to come: whom they cut, and whether
// they do, depends on whether the Run itself cuts others before them.
func (t *timeline) soon(from int, at, until time.Time) *Promise {
	u := t.uncut(at, t.bare)
	n, ok := u.firstFrom(from, u.count(until), u.fits)
	if !ok {
		u.rewind()
		return nil
	}
	return t.knownBy(u, from, n)
}

// departing returns the promise to start once those have left who are leaving already when others may be cut, or
// before that if something else comes in time; nil if their leaving alone would not do.
func (t *timeline) departing(at time.Time) *Promise {
	if !slices.ContainsFunc(t.events, func(e event) bool { return e.departs() && e.at.After(at) }) {
		return nil
	}
	u := t.uncut(at, slices.DeleteFunc(slices.Clone(t.bare), func(e event) bool {
		return e.at.After(at) && !e.takes && !e.departs()
	}))
	n, ok := u.firstFrom(u.count(at)+1, len(u.events), u.fits)
	if !ok {
		u.rewind()
		return nil
	}
	return t.knownBy(u, t.count(at)+1, n)
}

// uncut returns a timeline of events in which nobody is cut for Runs that come later than an instant. Nothing has come
// to pass on either.
func (t *timeline) uncut(at time.Time, events []event) *timeline {
	t.rewind()
	u := *t
	u.bare = events
	u.events = u.ousted(at)
	return &u
}

// knownBy returns the promise to start at the first event, from one on, that makes the Run fit, knowing that it fits by
// an event of another timeline.
func (t *timeline) knownBy(u *timeline, from, n int) *Promise {
	u.rewind()
	if first, ok := t.firstFrom(from, t.count(u.events[n-1].at), t.fits); ok {
		return t.known(first)
	}
	t.rewind()
	defer u.rewind()
	return u.known(n)
}
