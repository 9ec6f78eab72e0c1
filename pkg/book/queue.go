package book

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// Gate reports why a pod of a Run may not enter the scheduling queue yet; empty when it may. Of a gang without a plan
// only the leader enters, so that a waiting gang of any size costs one scheduling cycle. One that is refused here is
// woken in the same way as by a cycle that plans, at the cost of none.
func (b *Book) Gate(pod *corev1.Pod) string {
	b.mu.Lock()
	m := b.roster.members[pod.UID]
	if m == nil {
		b.roster.early[pod.UID] = true
	}
	why, refusal := b.gate(m)
	if refusal == nil {
		b.mu.unlockUnchanged()
		return why
	}
	defer b.mu.Unlock()
	b.waiting.stirred = true
	m.gang.woken, m.gang.absent, m.gang.tried = false, false, b.waiting.epoch
	b.waiting.refuse(m.gang, refusal)
	return refusal.Message
}

// gate says why a pod may not enter the queue, with a refusal where its whole gang is to wait.
func (b *Book) gate(m *member) (string, *plan.Refusal) {
	if !b.roster.open {
		return "waiting for the ledger to be read", nil
	}
	if m == nil {
		return gangUnseen.holdsBack(), nil
	}
	state := m.gang.state()
	switch {
	case state == gangUnseen, state == gangSuspended && m.stage < writing:
		return state.holdsBack(), nil
	case m.surplus():
		return beyondWidth, nil
	case m.gang.reasks(m):
		return "", nil
	case state == gangClearing:
		return whileLeaving, nil
	case m.gang.awaitsTurn(m):
		return waitsItsTurn, nil
	case m.stage >= assigned:
		return "", nil
	case state < gangQueued:
		return state.holdsBack(), nil
	case m.gang.leader() != m:
		return waitsForPlan, nil
	}
	if why := b.losses.holds(m); why != "" {
		return why, nil
	}
	switch {
	case m.part.Spare, m.gang.asksForSeats():
		return "", nil
	}
	return "", b.seats.stillLeased(m.gang)
}

// Less reports whether a pod comes before another in the scheduling queue: in the order of their Runs' places, each
// gang together and in order of index (R30). Pods that are not a Run's come by their own age.
func (b *Book) Less(x, y *corev1.Pod) bool {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	p, i := b.roster.inQueue(x)
	q, j := b.roster.inQueue(y)
	return cmp.Or(p.compare(q), cmp.Compare(i, j), strings.Compare(string(x.UID), string(y.UID))) < 0
}

// Place returns the node of a pod of a Run. The leader's call plans the whole gang: every missing pod gets a node and a
// payer at once, or the gang is refused and holds nothing.
func (b *Book) Place(pod types.UID, now time.Time) (string, *plan.Refusal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.roster.members[pod]
	if m == nil {
		return "", &plan.Refusal{Reason: plan.Unsupported, Message: "the pod does not belong to a Run"}
	}
	switch {
	case m.gang.suspended():
		return "", m.gang.notYet(whileSuspended)
	case m.gang.withdrawn:
		return "", m.gang.notYet(whileWithdrawn)
	case m.surplus():
		return "", m.gang.notYet(beyondWidth)
	case m.gang.reasks(m):
		b.places.ask(m.gang, m.gang.check.refusal)
		return "", m.gang.notYet(whileAsking)
	case m.gang.state() == gangClearing:
		return "", m.gang.notYet(whileLeaving)
	case m.gang.awaitsTurn(m):
		return "", m.gang.notYet(waitsItsTurn) // it was let in before the gang was planned anew
	case m.stage == assigned && (m.gang.deadline.IsZero() || m.gang.comesOneByOne()):
		m.gang.deadline = now.Add(b.args.GangDeadline.Duration)
	}
	if why := b.nodes.contradicts(m); why != "" {
		return "", b.starts.mismatch(m, why, now)
	}
	if m.stage == assigned && !m.gang.committed && !m.extra() && !now.Before(m.gang.deadline) {
		b.places.unwind(m.gang) // an earlier cycle of the gang ended between its plan and the barrier
	}
	if m.stage == unplaced {
		return b.starts.placeNew(m, now)
	}
	return m.node, nil
}

// Assigned returns the node that a pod of a Run is to go to; empty when it has none.
func (b *Book) Assigned(pod types.UID) string {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	if m := b.roster.members[pod]; m != nil {
		return m.node
	}
	return ""
}

// Ranks returns how many ranks the Run of a rank has that is about to be bound; 0 for a pod that is no rank.
func (b *Book) Ranks(pod types.UID) int {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	if m := b.roster.members[pod]; m != nil && !m.part.Spare {
		return m.gang.demand.Pods()
	}
	return 0
}

// Follow returns the rest of a pod's gang, once for every plan: pods that have a node and wait to be let into the
// queue.
func (b *Book) Follow(pod types.UID) []*corev1.Pod {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.roster.members[pod]; m != nil {
		return b.starts.follow(m)
	}
	return nil
}

// Fullness returns how full of held GPUs a node is, from 0 to most; 0 for a node without GPUs.
func (b *Book) Fullness(node string, most int64) int64 {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	known := b.nodes.byName[node]
	if known == nil {
		return 0
	}
	gpus := int64(b.nodes.gpusOf(known))
	if gpus == 0 {
		return 0
	}
	return min(most, most*int64(b.fleet.Held(node))/gpus)
}

// Turned records that another scheduling rule turned a pod's node down, or the pod as a whole when node is empty. The
// gang gives everything back and is planned anew without the node.
func (b *Book) Turned(pod types.UID, node, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.roster.members[pod]; m != nil && m.gang.run != nil {
		b.starts.turned(m, node, why)
	}
}

// Knows reports whether a node is what the book takes it for, in all that scheduling rules look at.
func (b *Book) Knows(node *corev1.Node) bool {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	known := b.nodes.byName[node.Name]
	return known != nil && !differ(known, node)
}

// Unseen records that the scheduler's cache does not have the node that a pod was given as the book has it, and why the
// pod was not placed there. It returns how soon to try the pod again; 0 when it is not to be.
func (b *Book) Unseen(pod types.UID, node, why string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.roster.members[pod]
	if m == nil || m.gang.run == nil || m.node != node || m.stage == unplaced || m.stage >= bound {
		return 0
	}
	m.unseen++
	if m.unseen > unseenTries && m.stage == assigned && (!m.gang.committed || m.gang.started()) {
		b.starts.turned(m, node, why)
		return 0
	}
	return min(unseenSoon<<min(m.unseen-1, 10), unseenLongest)
}

// Again has a pod tried again that has a node and is not bound.
func (b *Book) Again(pod types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.roster.members[pod]; m != nil && m.stage >= assigned && m.stage < bound {
		b.mail.activate(m.pod)
	}
}

// Retry has a Run planned again that was refused for something which may pass without an event, such as nodes that
// other scheduling rules rejected: what those look at is not in the book.
func (b *Book) Retry(run types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if g := b.roster.gangs[b.roster.runs[run]]; g != nil && g.refusal != nil && g.refusal.Passes() && !g.woken {
		g.readmitAll()
		g.check.reaches = nil
		clear(g.check.inVain)
		g.check.fails++
		b.waiting.wake(g)
	}
}

// The book and the scheduler's cache learn of nodes apart, so that a gang may be given one that the cache lacks for a
// moment, or knows as it was. Its pods are tried again soon, and less often as time goes by, up to unseenLongest. After
// unseenTries the node is left alone for as long as one that another rule turned down: the gang is not to hold its GPUs
// in vain.
const (
	unseenSoon    = 100 * time.Millisecond
	unseenLongest = 5 * time.Second
	unseenTries   = 5
)
