package book

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// Gate reports why a pod of a Run may not enter the scheduling queue yet; empty when it may. Of a gang without a plan only
// the leader enters, so that a waiting gang of any size costs one scheduling cycle.
func (b *Book) Gate(pod *corev1.Pod) string {
	b.mu.Lock()
	defer b.unlock()
	m := b.members[pod.UID]
	switch {
	case !b.open:
		return "waiting for the ledger to be read"
	case m == nil || m.gang.run == nil:
		return "waiting for the Run to be seen"
	case m.surplus():
		return beyondWidth
	case m.gang.awaiting > 0:
		return whileLeaving
	case m.stage >= assigned:
		return ""
	case m.gang.opportunistic():
		return waitsForIdle
	case !m.gang.complete():
		return "waiting for the Run's other pods to be created"
	case m.gang.leader() != m:
		return "waiting for the gang to be planned"
	}
	if refusal := b.stillLeased(m.gang); refusal != nil && !m.part.Spare {
		// As a cycle that plans would, at the cost of none: it is woken in the same way.
		b.stirred = true
		m.gang.woken, m.gang.tried = false, b.waiting.epoch
		b.refuse(m.gang, refusal)
		return refusal.Message
	}
	return ""
}

// Less reports whether a pod comes before another in the scheduling queue: pods of older Runs first, each gang together
// and in order of index (R30). Pods that are not a Run's come by their own age.
func (b *Book) Less(x, y *corev1.Pod) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, q := b.place(x), b.place(y)
	return cmp.Or(p.age.Compare(q.age), strings.Compare(p.namespace, q.namespace), strings.Compare(p.name, q.name),
		cmp.Compare(p.index, q.index), strings.Compare(string(x.UID), string(y.UID))) < 0
}

type queuePlace struct {
	age             time.Time
	namespace, name string
	index           int
}

func (b *Book) place(pod *corev1.Pod) queuePlace {
	if m := b.members[pod.UID]; m != nil && m.gang.run != nil {
		run := m.gang.run
		index := m.part.Index
		if m.part.Spare {
			index += rank.MaxPods // after the active pods
		}
		return queuePlace{run.CreationTimestamp.Time, run.Namespace, run.Name, index}
	}
	return queuePlace{pod.CreationTimestamp.Time, pod.Namespace, pod.Name, 0}
}

// Place returns the node of a pod of a Run. The leader's call plans the whole gang: every missing pod gets a node and a
// payer at once, or the gang is refused and holds nothing.
func (b *Book) Place(pod types.UID, now time.Time) (string, *plan.Refusal) {
	b.mu.Lock()
	defer b.unlock()
	m := b.members[pod]
	if m == nil {
		return "", &plan.Refusal{Reason: plan.Unsupported, Message: "the pod is not a Run's"}
	}
	switch {
	case m.surplus():
		return "", m.gang.notYet(beyondWidth)
	case m.gang.awaiting > 0:
		return "", m.gang.notYet(whileLeaving)
	case m.stage == unplaced && m.gang.opportunistic():
		return "", m.gang.notYet(waitsForIdle)
	case m.stage == assigned && m.gang.deadline.IsZero():
		m.gang.deadline = now.Add(b.args.GangDeadline.Duration)
	}
	if m.stage == assigned && !m.gang.committed && !m.extra() && !now.Before(m.gang.deadline) {
		b.unwind(m.gang) // an earlier cycle of the gang ended between its plan and the barrier
	}
	if m.stage == unplaced {
		if m.gang.leader() != m || !m.gang.complete() {
			return "", &plan.Refusal{Reason: plan.InsufficientGPUs, Message: "waiting for the gang to be planned"}
		}
		b.plan(m.gang, m.pod, now)
		switch {
		case m.stage == unplaced && m.surplus():
			b.activate(b.follow(m)...) // it does not lead them to the barrier itself
			return "", m.gang.notYet(beyondWidth)
		case m.stage == unplaced:
			return "", m.gang.refusal
		case m.gang.awaiting > 0:
			return "", m.gang.notYet(whileLeaving)
		}
	}
	return m.node, nil
}

// plan places all missing pods of a gang and assumes the result. Spares of a Run that has started come last, each by
// itself.
func (b *Book) plan(g *gang, pod *corev1.Pod, now time.Time) {
	defer b.lend(g)()
	b.stirred = true
	g.woken, g.tried = false, b.waiting.epoch
	g.committed = g.committed && g.underWay() // a gang that starts anew passes the barrier as a whole
	var refusal *plan.Refusal
	if !g.started() || g.active.first() != nil {
		refusal = b.planGang(g, pod, now)
	}
	if refusal == nil && g.started() {
		refusal = b.planSpares(g, pod, now)
	}
	if refusal != nil {
		refusal.Grow = !refusal.Spare && g.grows()
		b.refuse(g, refusal)
		return
	}
	g.refusal = nil
	b.waiting.remove(g)
}

// planSpares places each missing spare that there is room for, lets it into the queue, and returns why the first of the
// others is refused. The pod that plans is in the queue already.
func (b *Book) planSpares(g *gang, pod *corev1.Pod, now time.Time) *plan.Refusal {
	domains, refusal := b.domainsOf(g)
	if refusal != nil {
		refusal.Spare = true
		return refusal
	}
	for _, m := range g.spares.between(0, g.spares.size) {
		if m == nil || m.stage != unplaced || m.leaving {
			continue
		}
		missing := []plan.Missing{g.missingPod(m, domains)}
		assignments, short := plan.Gang(b.fleet, b.accounts, g.demand, b.claim(g, nil), missing, b.unfitForSpares(g, b.rejected(g, m.pod)), now)
		switch {
		case short == nil:
			b.assume(g, assignments, now)
			if g.demand.Confined || g.demand.OneDomain {
				domains[g.scope(m)] = assignments[0].Domain
			}
			if m.pod != pod {
				b.activate(m.pod)
			}
		case refusal == nil:
			refusal = short
			refusal.Spare = true
			b.blame(g, pod, refusal, func(rejected func(string) bool) bool {
				_, short := plan.Gang(b.fleet, b.accounts, g.demand, b.claim(g, nil), missing, rejected, now)
				return short == nil
			})
		}
	}
	return refusal
}

// assume takes the GPUs and the money of assignments.
func (b *Book) assume(g *gang, assignments []plan.Assignment, now time.Time) {
	b.giveRoom(g)
	for _, a := range assignments {
		m := g.squad(a.Part).members[a.Index]
		b.hold(m.pod.UID, a.Node, g.demand.GPUsPerPod, func(h *holding) {
			h.planned, h.spare, h.shard, h.run = true, a.Spare, g.opportunistic(), g.run.UID
		})
		b.advance(m, assigned, a.Node, payer{a.Payer, a.Relation})
		b.accounts.Open(leaseName(m.pod).String(), b.chargeOf(m, now))
		for _, other := range b.intended[a.Node] {
			other.seen = -1 // its promise, and whom it threatens, is not what it was
		}
	}
	b.makeRoom(g, assignments)
}

// notYet refuses a gang for now: what stands in its way passes by itself.
func (g *gang) notYet(message string) *plan.Refusal {
	return &plan.Refusal{Reason: plan.NotYet, Owner: g.demand.Owner, Flavor: g.demand.Flavor, Message: message}
}

// missingOf lists the pods of a gang without a node, spares of a Run that has started apart. A cohort that it grows by comes
// when nothing else is missing. It refuses while the Lease of a lost rank, or of the spare whose place it takes, is open: that
// is closed first. The room that was kept for the missing is theirs now; that of spares stays kept until they have it.
func (b *Book) missingOf(g *gang) ([]plan.Missing, *plan.Refusal) {
	if refusal := b.stillLeased(g); refusal != nil {
		return nil, refusal
	}
	domains, refusal := b.domainsOf(g)
	if refusal != nil {
		return nil, refusal
	}
	b.notePayers(g)
	b.vacate(g, func(v *vacancy) bool { return !v.seat() && v.index != anyRank })
	var out []plan.Missing
	grows := g.grows()
	for m := range g.all() {
		if m.stage == unplaced && (m.joins() && grows || !m.joins() && !m.extra()) {
			out = append(out, g.missingPod(m, domains))
		}
	}
	return out, nil
}

// stillLeased refuses a gang while the Lease is open of a lost rank, of the spare whose place one takes, or of an old pod whose
// room it keeps.
func (b *Book) stillLeased(g *gang) *plan.Refusal {
	for i := range g.vacant {
		if h := b.held[g.vacant[i].pod]; h != nil && h.leased && g.vacant[i].index != anyRank {
			return g.notYet("the Lease of a lost pod is still open; it is closed first")
		}
	}
	for i := range g.requeue.places {
		if h := b.held[g.requeue.places[i].pod]; h != nil && (h.leased || h.bound) {
			return g.notYet("the Lease of an old pod is still open; it is closed first")
		}
	}
	return nil
}

// missingPod says where a pod without a node may go.
func (g *gang) missingPod(m *member, domains map[int]string) plan.Missing {
	out := plan.Missing{Part: m.part, Domain: domains[g.scope(m)]}
	if out.Spare {
		first := m.group() * g.demand.PodsPerGroup
		for _, other := range g.active.between(first, first+g.demand.PodsPerGroup) {
			if other != nil && other.placed() {
				out.Beside = append(out.Beside, other.node)
			}
		}
	}
	return out
}

// scope is what must lie in one domain together: the member's group, or the whole gang.
func (g *gang) scope(m *member) int {
	if g.demand.OneDomain {
		return 0
	}
	return m.group()
}

func (b *Book) refuse(g *gang, refusal *plan.Refusal) {
	g.refusal = refusal
	b.waiting.add(g)
	b.reconcile(keyOf(g.run))
}

// Assigned returns the node that a pod of a Run is to go to; empty when it has none.
func (b *Book) Assigned(pod types.UID) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.members[pod]; m != nil {
		return m.node
	}
	return ""
}

// Follow returns the rest of a pod's gang, once for every plan: pods that have a node and wait to be let into the queue.
func (b *Book) Follow(pod types.UID) []*corev1.Pod {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.members[pod]; m != nil {
		return b.follow(m)
	}
	return nil
}

func (b *Book) follow(m *member) []*corev1.Pod {
	if !m.gang.planned {
		return nil
	}
	m.gang.planned = false
	var out []*corev1.Pod
	for other := range m.gang.all() {
		if other != m && other.stage >= assigned && other.stage < bound && other.stage != reserved {
			out = append(out, other.pod)
		}
	}
	return out
}

// Fullness returns how full of held GPUs a node is, from 0 to most; 0 for a node without GPUs.
func (b *Book) Fullness(node string, most int64) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.nodes[node]
	if known == nil {
		return 0
	}
	gpus := int64(b.gpusOf(known))
	if gpus == 0 {
		return 0
	}
	return min(most, most*int64(b.fleet.Held(node))/gpus)
}
