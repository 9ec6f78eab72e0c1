package book

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/lane"
)

// Reserve records that the scheduler has taken a pod's node in its own cache. It fails if the pod's assignment has been
// taken back meanwhile.
func (b *Book) Reserve(pod types.UID, node string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.roster.members[pod]
	if m == nil || m.node != node || m.stage < assigned {
		return fmt.Errorf("the gang's plan has changed")
	}
	if m.stage == assigned {
		b.seats.advance(m, reserved, m.node, m.payer)
		b.seats.hold(pod, "", 0, func(h *holding) { h.seated = false }) // kube-scheduler counts what it requests
		if m.gang.awaitsPods() {
			b.mail.reconcile(keyOf(m.gang.run), lane.Begin)
		}
		if len(SpreadKeys(m.pod)) > 0 {
			b.tellNextInTurn(m.gang)
		}
	}
	return nil
}

// tellNextInTurn has the next rank of a gang that is spread come to its node, and its spares once all have.
func (b *Book) tellNextInTurn(g *gang) {
	if next := g.nextInTurn(); next != nil {
		if !next.standIn {
			b.mail.activate(next.pod)
		}
		return
	}
	for _, m := range g.spares.members {
		if m != nil && m.stage == assigned && !m.standIn {
			b.mail.activate(m.pod)
		}
	}
}

// Unreserve takes a pod's reservation back. Before the barrier opens, or past the gang's deadline, one member's failure
// unwinds the gang; otherwise the pod keeps its assignment and is tried again. A spare of a Run that has started
// concerns nobody else.
func (b *Book) Unreserve(pod types.UID, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.roster.members[pod]
	if m == nil || m.stage != reserved {
		return
	}
	g := m.gang
	if m.extra() {
		b.places.release(m)
		return
	}
	if g.committed && now.Before(g.deadline) {
		b.seats.advance(m, assigned, m.node, m.payer)
		g.planned = true // those that were to follow it have not been woken if its cycle failed
		return
	}
	b.places.release(m) // before the others, so that it is not rejected again
	if g.takesTooLong(now) {
		b.turns.giveUp(g, now)
		return
	}
	b.places.unwind(g)
	if lead := g.leader(); lead != nil && g.complete() {
		b.mail.activate(lead.pod)
	}
}

// Waits reports whether a pod is still part of a plan at the barrier.
func (b *Book) Waits(pod types.UID) bool {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	m := b.roster.members[pod]
	return m != nil && m.stage >= reserved
}

// hasPassed reports whether ranks of a gang that runs are past the barrier: those that it loses do not wait for each
// other there, whatever this process has seen of it.
func (g *gang) hasPassed() bool {
	ranks := g.active.between(0, g.active.size)
	return g.started() && g.growing() == 0 &&
		slices.ContainsFunc(ranks, func(m *member) bool { return m != nil && m.holds() })
}

// Arrive tells that a pod has reached the barrier. When it is the last of its gang the barrier opens, and Arrive
// returns the pods that were waiting; before that it returns how long the pod is to wait. A cohort that a Run grows by
// is a gang of its own, which the Run's other pods do not wait for.
func (b *Book) Arrive(pod types.UID, now time.Time) (open bool, release []types.UID, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.roster.members[pod]
	if m == nil || m.stage < reserved {
		return false, nil, 0 // unwound on the way here
	}
	g := m.gang
	if g.committed || m.stage >= writing || m.extra() || g.growing() > 0 && !m.joins() {
		return true, nil, 0
	}
	if !g.ready() {
		return false, nil, g.deadline.Sub(now)
	}
	g.committed = true
	for other := range g.all() {
		if other != m && other.stage == reserved && !other.extra() && (g.growing() == 0 || other.joins()) {
			release = append(release, other.pod.UID)
		}
	}
	return true, release, 0
}
