package controllers

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// TestContact has the API server answer, or not, and says since when nobody's silence goes unheard.
func TestContact(t *testing.T) {
	const never = -1
	at := func(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }
	for name, test := range map[string]struct {
		answers map[int]bool // by when they come, in seconds
		at      int
		since   int
	}{
		"never asked":             {at: 0, since: never},
		"once":                    {answers: map[int]bool{0: true}, at: 5, since: 0},
		"again and again":         {answers: map[int]bool{0: true, 10: true, 20: true}, at: 25, since: 0},
		"one is late":             {answers: map[int]bool{0: true, 30: true}, at: 30, since: 0},
		"none for long":           {answers: map[int]bool{0: true}, at: 31, since: never},
		"anew after long":         {answers: map[int]bool{0: true, 31: true}, at: 40, since: 31},
		"one that fails":          {answers: map[int]bool{0: true, 10: false}, at: 10, since: never},
		"anew after one failed":   {answers: map[int]bool{0: true, 10: false, 20: true}, at: 25, since: 20},
		"before the first answer": {answers: map[int]bool{0: false}, at: 10, since: never},
	} {
		c := contact{period: 10 * time.Second}
		for second := range 60 {
			if answer, comes := test.answers[second]; comes {
				c.hear(answer, at(second))
			}
		}
		since, ok := c.held(at(test.at))
		if ok != (test.since != never) || ok && !since.Equal(at(test.since)) {
			t.Errorf("%s: since %s, %v", name, since, ok)
		}
	}
}

// TestContactSettles at once when it has never been interrupted, and otherwise after a rest.
func TestContactSettles(t *testing.T) {
	const period, rest = 10 * time.Second, 15 * time.Second
	at := func(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }
	c := contact{period: period}
	for _, step := range []struct {
		at      int
		answers bool
		settled bool
	}{
		{0, false, false}, // it has never begun
		{10, true, true},
		{20, true, true},
		{30, false, false},
		{40, true, false},
		{50, true, false},
		{55, true, true},
	} {
		c.hear(step.answers, at(step.at))
		if settled := c.settled(at(step.at), rest); settled != step.settled {
			t.Errorf("at %d s: settled %v", step.at, settled)
		}
	}
}

// TestContactIsKept by asking, so that it is lost when there is no answer.
func TestContactIsKept(t *testing.T) {
	s, clock := newServer(t), clocktesting.NewFakeClock(noon)
	c := &contact{period: 10 * time.Second}
	go c.keep(t.Context(), s.kube, clock)
	awaitWaiters(clock)
	for _, step := range []struct {
		faults []fault
		since  time.Duration // after noon
		ok     bool
	}{
		{ok: true},
		{ok: true},
		{faults: []fault{{on: "list nodes", err: broken500}}},
		{ok: true, since: 40 * time.Second},
	} {
		s.mu.Lock()
		s.faults = step.faults
		s.mu.Unlock()
		tick(clock, c.period)
		if since, ok := c.held(clock.Now()); ok != step.ok || ok && !since.Equal(noon.Add(step.since)) {
			t.Errorf("at %s: since %s, %v", clock.Now(), since, ok)
		}
	}
}
