package lifecycle

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// cuts are what activations of Reservations do to the Run (R19).
type cuts struct {
	facts *facts
	// final is the cut that ends the Run as it runs now; nil when none does.
	final *rank.Cut
	// left is what they leave of the Run, in GPUs.
	left int32
}

// cutsOf works out what the cuts do to the Run as it runs now: it had started by their activation. Cuts of an earlier
// start do not concern a later one.
func cutsOf(f *facts) cuts {
	c := cuts{facts: f, left: math.MaxInt32}
	for i := range f.Cuts {
		cut := &f.Cuts[i]
		if !ranBefore(f.Run, cut.At) {
			continue
		}
		if c.final == nil && endsAll(cut) {
			c.final = cut
		}
		if c.shrinks(cut) {
			c.left = min(c.left, *cut.Width)
		}
	}
	return c
}

// shrinks reports whether a cut makes the Run narrower.
func (c *cuts) shrinks(cut *rank.Cut) bool {
	return cut.Action.Narrows() && cut.Width != nil && c.facts.Shape == nil && c.facts.Demand.GPUsPerPod > 0
}

// of returns the cut that ends what a Lease holds; nil when none does. What was opened after the activation is not cut.
func (c *cuts) of(lease *rqv1.Lease) *rank.Cut {
	part := rank.Held(lease)
	for i := range c.facts.Cuts {
		cut := &c.facts.Cuts[i]
		if cut.UID != lease.Spec.RunRef.UID || !lease.HeldSince().Before(cut.At) {
			continue
		}
		if (!cut.Action.Narrows() || c.shrinks(cut)) && c.facts.Demand.Cuts(&cut.Cut, part) {
			return cut
		}
	}
	return nil
}

// underWay returns the cut that ends the Run, or else the first that takes what it still holds; nil when none does.
// Giving back what is on loan is none.
func (c *cuts) underWay() *rank.Cut {
	if c.final != nil {
		return c.final
	}
	for i := range c.facts.Cuts {
		cut := &c.facts.Cuts[i]
		if cut.Action.Cuts() && slices.ContainsFunc(c.facts.Leases, func(l *rqv1.Lease) bool { return c.of(l) == cut }) {
			return cut
		}
	}
	return nil
}

// doom reports whether a pod goes by a cut, whatever its Run's status says by now: a spare that is dropped, or a pod
// that is left of a Run that was sent back to wait, also since its time was over. Once the status says so it is done,
// also where the Reservation is over before the pods are told: some of them may have been.
func (c *cuts) doom(pod *corev1.Pod) bool {
	waits := saysPending(c.facts.Run)
	if lease := c.facts.leaseOf[pod.UID]; lease != nil {
		cut := c.of(lease)
		return cut != nil && (cut.Action == rqv1.CutDropSpare || endsAll(cut) && waits) ||
			waits && (c.facts.preempted(lease) || c.facts.timedOut(lease))
	}
	if !waits || unfinished(pod) || c.facts.theirs() && pod.Status.Phase == corev1.PodSucceeded {
		return false // what others make is not made again once it is done
	}
	return c.facts.Former[pod.UID] && (preemption(c.facts.Run) != nil || c.facts.Run.Status.Timeouts != nil ||
		slices.ContainsFunc(c.facts.Cuts, func(cut rank.Cut) bool { return endsAll(&cut) }))
}

// endsAll reports whether a cut ends all that its Run held.
func endsAll(cut *rank.Cut) bool { return cut.Action == rqv1.CutLottery }

// reasonOf returns the reason that a cut closes Leases with.
func reasonOf(cut *rank.Cut) rqv1.ClosureReason {
	switch cut.Action {
	case rqv1.CutDropSpare:
		return rqv1.ClosedDropSpare
	case rqv1.CutShrink, rqv1.CutReturn:
		return rqv1.ClosedShrink
	}
	if cut.ForRank {
		return rqv1.ClosedPriorityPreempt
	}
	return rqv1.ClosedRandomPreempt
}

// purpose says what is cut, and for whom.
func purpose(cut *rank.Cut) string {
	what := "cut by lottery"
	if cut.ForRank {
		what = "ended"
	}
	switch cut.Action {
	case rqv1.CutDropSpare:
		what = "spare dropped"
	case rqv1.CutShrink:
		what = "shrunk"
	case rqv1.CutReturn:
		what = "gives back GPUs beyond its totalGPUs"
	}
	if cut.ForRank {
		return fmt.Sprintf("%s for a lost rank of Run %s, which has a higher priority", what, cut.For)
	}
	return fmt.Sprintf("%s for Run %s (Reservation %s)", what, cut.For, cut.Reservation)
}
