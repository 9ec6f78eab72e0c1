package book

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// startedAt returns when a Run that runs started.
func (g *gang) startedAt() (time.Time, bool) {
	if g.run == nil {
		return time.Time{}, false
	}
	return g.run.StartedAt()
}

// endsAt returns when a Run that runs ends by its maxDuration; one that is about to start, as if it started now.
func (g *gang) endsAt(now time.Time) (time.Time, bool) {
	at, ok := g.startedAt()
	if !ok {
		at = now
	}
	end := g.run.Spec.Until(at)
	return end, !end.IsZero()
}

// startedBefore reports whether a Run runs and started before an instant, as its status tells it, in whole seconds:
// only such a Run is ended by an activation at that instant.
func (g *gang) startedBefore(at time.Time) bool {
	started, ok := g.startedAt()
	return ok && beganBefore(started, at)
}

// beganBefore reports whether what a status says began at an instant, in whole seconds, did so before another.
func beganBefore(began, at time.Time) bool { return began.Before(at.Truncate(time.Second)) }

// starts reports whether a Run that waits has its places. Pods that are leaving are of an earlier start.
func (g *gang) starts() bool {
	return g.run != nil && g.run.Status.Phase == rqv1.RunPending && g.underWay() && g.touches(func(m *member) bool {
		return !m.leaving
	})
}

// touches reports whether any member is where asked for.
func (g *gang) touches(within func(*member) bool) bool {
	for m := range g.all() {
		if m.placed() && within(m) {
			return true
		}
	}
	return false
}

// requeuedAt returns when a Run that waits was requeued because of a node's loss, as its status says in whole seconds.
func (g *gang) requeuedAt() (time.Time, bool) {
	if g.run == nil || g.run.Status.Phase != rqv1.RunPending || g.suspended() {
		return time.Time{}, false
	}
	c := meta.FindStatusCondition(g.run.Status.Conditions, rqv1.ConditionRoomKept)
	if c == nil || c.Status != metav1.ConditionTrue {
		return time.Time{}, false
	}
	return c.LastTransitionTime.Time, true
}

// keepsRoom reports whether the gang's old room is still its own.
func (g *gang) keepsRoom() bool {
	_, requeued := g.requeuedAt()
	return requeued && !g.requeue.lapsed
}

// keepsMoney reports whether what paid for a requeued gang is still its own: until its status says that its time was
// over. Whoever comes next reads it there.
func (g *gang) keepsMoney() bool {
	_, requeued := g.requeuedAt()
	return requeued
}

// old reports whether a Lease is of before the gang was requeued.
func (g *gang) old(l *lease) bool {
	_, requeued := g.requeuedAt()
	return requeued && g.former(l)
}

// former reports whether a Lease, if there is one, was opened before the Run was last sent back to wait.
func (g *gang) former(l *lease) bool {
	return l != nil && g.run != nil && l.attempt < g.run.Status.Attempt
}

// waits reports whether the gang has been refused a start.
func (g *gang) waits() bool {
	return g.run != nil && !g.opportunistic() && g.run.Status.Phase == rqv1.RunPending && g.refusal != nil &&
		!g.suspended() &&
		g.shape == nil && (g.complete() || g.unpaid)
}

// unmade reports whether a Run waits for its start and has no pod, nor anything that is kept for one. A leader's that
// waits for money is none.
func (g *gang) unmade() bool {
	if g.run == nil || g.shape != nil || g.run.Status.Phase != rqv1.RunPending || g.run.DeletionTimestamp != nil ||
		g.suspended() ||
		g.active.present+g.spares.present > 0 && !g.shortOfMoney() || len(g.vacant) > 0 || g.keepsRoom() ||
		g.activation != nil || g.activating() {
		return false
	}
	for _, l := range g.latest {
		if l.reason == "" {
			return false // what it held before is still charged to it
		}
	}
	return true
}

// shortOfMoney reports whether the gang's leader has been refused for want of money.
func (g *gang) shortOfMoney() bool {
	return (g.unpaid || g.refusal != nil && g.refusal.AboutMoney() && !g.woken) && !g.opportunistic() && !g.underWay()
}

// sample returns a pod by which the nodes are judged that the gang's pods may use: the leader's, or the template's
// while it has none; nil when all pods are placed.
func (g *gang) sample() *corev1.Pod {
	if lead := g.leader(); lead != nil {
		return lead.pod
	}
	if g.unpaid {
		return g.model()
	}
	return nil
}

// doomed reports whether a member is cut for another gang: by its activation, or for a rank that it has lost.
func (m *member) doomed() bool {
	return m.awaited != nil && (m.awaited.activates() || m.awaited.started() && m.awaited.awaiting > 0)
}

// activates reports whether it has been decided who is cut for the gang, and that has not ended.
func (g *gang) activates() bool { return g.run != nil && (g.activation != nil || g.activating()) }

// lastLoss returns when the last of the ranks ended that a running gang lacks, or replaces; zero when none has.
func (g *gang) lastLoss() (at time.Time) {
	if !g.started() {
		return time.Time{}
	}
	for part, l := range g.latest {
		if !part.Spare && l.ended.After(at) {
			at = l.ended
		}
	}
	return at
}

// leavesRoom reports whether what a lost pod held is to be kept for its gang.
func (m *member) leavesRoom() bool {
	g := m.gang
	switch {
	case g.suspended(), g.moving[m.pod.UID]:
		return false
	case g.keepsRoom():
		return m.holds() && !m.doomed() && !g.opportunistic()
	case m.stage != bound || !g.started() || m.doomed() || g.opportunistic():
		return false
	case m.surplus():
		return !g.active.whole() || g.firstRank() != nil
	}
	return !m.part.Spare
}

// outgoing reports whether a member is on its way out, and nobody takes its place there: it is cut, its Run waits, or
// goes on without it.
func (m *member) outgoing() bool {
	moves := m.gang.moving[m.pod.UID]
	return m.doomed() || m.leaving && (moves || !m.gang.started() || m.gang.suspended() || m.surplus() && !m.leavesRoom())
}

// hangs reports whether a pod has been told to go and should be long gone: who has it cut gains nothing.
func (m *member) hangs(now time.Time) bool {
	at, told := rank.GoesBy(m.pod)
	return told && !now.Before(at.Add(overstay))
}

// overstay is how long a pod may still be there once its grace period is over: its kubelet stops its containers then,
// and takes a moment to say so. From then on it is not known when it goes (R37).
const overstay = 30 * time.Second

// soon is when, at a guess, something is free whose time is up.
const soon = 5 * time.Second
