// Package news decides what becomes an event of what is told of objects, and when. What is told for the first time is
// written at once. What is told again counts: an event says how often and when last, and need not be written each time.
// Many different things that are told at once of one object for one reason are gathered into few events. Nothing that
// is told is left out for being like something else that was told.
package news

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// LongestNote is how many bytes the API takes in the note of an event: it refuses a longer one.
const LongestNote = 1024

const (
	// keep is for how long a thing that is told again is the same news, since it was told last.
	keep = 10 * time.Minute
	// rest is how long news that goes on is not written again.
	rest = time.Minute
	// burst is how many things are told one by one of a topic.
	burst = 10
	// between separates things that are told together.
	between = "; "
)

// Topic is what news are about: an object, whatever its version, and a reason.
type Topic struct {
	Regarding            corev1.ObjectReference
	Type, Reason, Action string
}

// Event is one to write: a new one if it has been told once, or how often and when one was told that was written.
type Event struct {
	Topic
	Note string
	// ID tells it from all others, and First is when it was told first, Last when it was told last.
	ID          int64
	First, Last time.Time
	Count       int32
}

// Desk remembers for a while what it was told.
type Desk struct {
	topics map[Topic]*coverage
	// due are the topics of which something is to be written later.
	due    map[Topic]bool
	lastID int64
	swept  time.Time
}

// coverage is what was told of a topic.
type coverage struct {
	told map[string]*story
	// waiting are the things that wait to be told together, and begun is when an event was made last.
	waiting []string
	begun   time.Time
}

// story is an event that was written, and how often it was told then.
type story struct {
	Event
	stored  int32
	written time.Time
}

// NewDesk returns a desk that was told nothing.
func NewDesk() *Desk { return &Desk{topics: map[Topic]*coverage{}, due: map[Topic]bool{}} }

// Tell tells something at an instant, and returns what is to be written of it now; nil for nothing.
func (d *Desk) Tell(topic Topic, note string, now time.Time) *Event {
	c := d.topics[topic]
	if c == nil {
		c = &coverage{told: map[string]*story{}}
		d.topics[topic] = c
	}
	switch s := c.told[note]; {
	case s != nil && now.Sub(s.Last) < keep:
		s.Count++
		s.Last = now
		if s.stored == 1 || now.Sub(s.written) >= rest {
			return s.write(now)
		}
		d.due[topic] = true
		return nil
	case s == nil && len(c.told) >= burst:
		if !slices.Contains(c.waiting, note) {
			c.waiting = append(c.waiting, note)
		}
		d.due[topic] = true
		return nil
	}
	return d.begin(topic, note, now)
}

// Due returns what is to be written by an instant of what was told before, and forgets what is no news any more.
func (d *Desk) Due(now time.Time) []*Event {
	var out []*Event
	for topic := range d.due {
		c := d.topics[topic]
		left := len(c.waiting) > 0
		if left && now.Sub(c.begun) >= rest {
			out = append(out, d.begin(topic, c.gather(), now))
			left = len(c.waiting) > 0
		}
		for _, s := range c.told {
			if s.Count > s.stored && now.Sub(s.written) >= rest {
				out = append(out, s.write(now))
			}
			left = left || s.Count > s.stored
		}
		if !left {
			delete(d.due, topic)
		}
	}
	slices.SortFunc(out, func(a, b *Event) int { return cmp.Compare(a.ID, b.ID) })
	if now.Sub(d.swept) >= rest {
		d.sweep(now)
	}
	return out
}

// begin makes an event.
func (d *Desk) begin(topic Topic, note string, now time.Time) *Event {
	c := d.topics[topic]
	d.lastID = max(d.lastID+1, now.UnixNano())
	c.begun = now
	c.told[note] = &story{Event: Event{Topic: topic, Note: note, ID: d.lastID, First: now, Last: now, Count: 1}}
	return c.told[note].write(now)
}

// gather returns as many of the things that wait as one note takes, the first of them in any case. They wait no more.
func (c *coverage) gather() string {
	n, size := 1, len(c.waiting[0])
	for n < len(c.waiting) && size+len(between)+len(c.waiting[n]) <= LongestNote {
		size += len(between) + len(c.waiting[n])
		n++
	}
	note := strings.Join(c.waiting[:n], between)
	c.waiting = slices.Clone(c.waiting[n:])
	return note
}

// write returns a story's event, which is written.
func (s *story) write(now time.Time) *Event {
	s.stored, s.written = s.Count, now
	event := s.Event
	return &event
}

// sweep forgets what is no news any more.
func (d *Desk) sweep(now time.Time) {
	d.swept = now
	for topic, c := range d.topics {
		for note, s := range c.told {
			if s.stored == s.Count && now.Sub(s.Last) >= keep {
				delete(c.told, note)
			}
		}
		if len(c.told) == 0 && len(c.waiting) == 0 {
			delete(d.topics, topic)
		}
	}
}
