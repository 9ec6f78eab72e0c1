package nodeloss

import (
	"fmt"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

const (
	// early is how long before a silence is evidence it counts against the limit: kubelets renew every 10 s, so that those
	// that fall silent together have renewed last at any time within 10 s.
	early = 10 * time.Second
	// usual is the silence that healthy kubelets keep between two renewals, and a little more: it never counts.
	usual = 11 * time.Second
	// Few is how many nodes may show a sign of loss at once whatever the limit, and without a wait for others to show it.
	Few = 3
	// gathering is how long a condition has to be True until it is evidence where more than a few nodes show a sign: what
	// befalls many at once shows on some of them first.
	gathering = 5 * time.Second
	// recent is for how long a node that was lost by a sign goes on counting as one that shows it: what goes wrong on one
	// node after the other is held back too.
	recent = time.Hour
)

// gathering returns how long a condition has to be True until it is evidence whatever other nodes show.
func (r Rules) gathering() time.Duration { return min(gathering, r.Grace) }

// counted returns the silence from which on a node counts against the limit.
func (r Rules) counted() time.Duration { return max(r.Grace-early, min(r.Grace, usual)) }

// Sign reports whether a node counts against the limit of nodes that show signs of loss at once (R25): it has a
// condition that means a loss, or has been silent for almost the grace. One that an administrator has told about, or
// that has been lost for long, does not: nothing is to be decided about it.
func (r Rules) Sign(s *Sight, contact, now time.Time) bool {
	if s.gone || s.node == nil {
		return false
	}
	reason, _, evident := r.Evident(s.node)
	if evident && reason.Certain() {
		return false
	}
	if _, lost := Recorded(s.node); lost {
		at, as, _, told := Told(s.node.Annotations[rqv1.AnnotationLost])
		if !told || as.Certain() || now.Sub(at) >= recent {
			return false
		}
	}
	if evident {
		return true
	}
	for _, since := range []time.Time{s.unready, s.renewed} {
		if !since.IsZero() && now.Sub(latest(since, contact)) >= r.counted() {
			return true
		}
	}
	return false
}

func latest(x, y time.Time) time.Time {
	if x.After(y) {
		return x
	}
	return y
}

// Signs is how many of the nodes with GPUs show a sign of loss, and how many may (R25).
type Signs struct{ Shown, Nodes, Limit int }

// TooMany reports whether more nodes show one than may.
func (s Signs) TooMany() bool { return s.Shown > s.Limit }

// Say tells that they do.
func (s Signs) Say() string {
	return fmt.Sprintf("%d of %d nodes with GPUs show signs of loss at once, more than the %d that nodeLossLimit allows",
		s.Shown, s.Nodes, s.Limit)
}

// Treatment is what becomes of a node against which there is evidence.
type Treatment int

// Values of Treatment.
const (
	// Lose: it is taken for lost.
	Lose Treatment = iota
	// HoldBack: it is not, while too many nodes show a sign.
	HoldBack
	// Wait: the evidence is young, and more than a few nodes show a sign: it waits for what the others show.
	Wait
)

// Treat says what becomes of a node by the evidence against it.
func (s Signs) Treat(v Verdict) Treatment {
	switch {
	case v.Reason.Certain():
		return Lose
	case s.TooMany():
		return HoldBack
	case !v.Again.IsZero() && s.Shown > Few:
		return Wait
	}
	return Lose
}
