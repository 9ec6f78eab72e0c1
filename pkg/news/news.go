// Package news decides what becomes an event of what is told of objects, and when. What is told for the first time is
// written at once. What is told again counts: an event says how often and when last, and need not be written each time.
// Nothing that is told is left out for being like something else that was told.
package news

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// keep is for how long a thing that is told again is the same news, since it was told last.
	keep = 10 * time.Minute
	// rest is how long news that goes on is not written again.
	rest = time.Minute
)

// Fact is what is told: of an object, whatever its version, for a reason.
type Fact struct {
	Regarding                  corev1.ObjectReference
	Type, Reason, Action, Note string
}

// Event is one to write: a new one if it has been told once, or how often and when one was told that was written.
type Event struct {
	Fact
	// ID tells it from all others, and First is when it was told first, Last when it was told last.
	ID          int64
	First, Last time.Time
	Count       int32
}

// Desk remembers for a while what it was told.
type Desk struct {
	told map[Fact]*story
	// due are those of which it is to be written later how often they were told.
	due    map[Fact]bool
	lastID int64
	swept  time.Time
}

// story is an event that was written, and how often it was told then.
type story struct {
	Event
	stored  int32
	written time.Time
}

// NewDesk returns a desk that was told nothing.
func NewDesk() *Desk { return &Desk{told: map[Fact]*story{}, due: map[Fact]bool{}} }

// Tell tells something at an instant, and returns what is to be written of it now; nil for nothing.
func (d *Desk) Tell(fact Fact, now time.Time) *Event {
	s := d.told[fact]
	if s == nil || now.Sub(s.Last) >= keep {
		d.lastID = max(d.lastID+1, now.UnixNano())
		s = &story{Event: Event{Fact: fact, ID: d.lastID, First: now}}
		d.told[fact] = s
	}
	s.Count++
	s.Last = now
	if s.stored > 1 && now.Sub(s.written) < rest {
		d.due[fact] = true
		return nil
	}
	return d.write(s, now)
}

// Due returns what is to be written by an instant of what was told before, and forgets what is no news any more.
func (d *Desk) Due(now time.Time) []*Event {
	var out []*Event
	for fact := range d.due {
		if s := d.told[fact]; now.Sub(s.written) >= rest {
			out = append(out, d.write(s, now))
		}
	}
	slices.SortFunc(out, func(a, b *Event) int { return cmp.Compare(a.ID, b.ID) })
	if now.Sub(d.swept) >= rest {
		d.sweep(now)
	}
	return out
}

// write returns a story's event, which is written.
func (d *Desk) write(s *story, now time.Time) *Event {
	s.stored, s.written = s.Count, now
	delete(d.due, s.Fact)
	event := s.Event
	return &event
}

// sweep forgets what is no news any more.
func (d *Desk) sweep(now time.Time) {
	d.swept = now
	for fact, s := range d.told {
		if !d.due[fact] && now.Sub(s.Last) >= keep {
			delete(d.told, fact)
		}
	}
}
