package book

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// Gate reports why a pod of a Run may not enter the scheduling queue yet; empty when it may. Of a gang without a plan only
// the leader enters, so that a waiting gang of any size costs one scheduling cycle.
func (b *Book) Gate(pod *corev1.Pod) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.members[pod.UID]
	switch {
	case !b.open:
		return "waiting for the ledger to be read"
	case m == nil || m.gang.run == nil:
		return "waiting for the Run to be seen"
	case m.stage >= assigned:
		return ""
	case !m.gang.complete():
		return "waiting for the Run's other pods to be created"
	case m.gang.leader() != m:
		return "waiting for the gang to be planned"
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
		return queuePlace{run.CreationTimestamp.Time, run.Namespace, run.Name, m.index}
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
	if m.stage == assigned && !m.gang.committed && !now.Before(m.gang.deadline) {
		b.unwind(m.gang) // an earlier cycle of the gang ended between its plan and the barrier
	}
	if m.stage == unplaced {
		if m.gang.leader() != m || !m.gang.complete() {
			return "", &plan.Refusal{Reason: plan.InsufficientGPUs, Message: "waiting for the gang to be planned"}
		}
		if refusal := b.plan(m.gang, m.pod, now); refusal != nil {
			return "", refusal
		}
	}
	return m.node, nil
}

// plan places all missing pods of a gang and assumes the result.
func (b *Book) plan(g *gang, pod *corev1.Pod, now time.Time) *plan.Refusal {
	b.stirred = true
	g.woken, g.tried = false, b.waiting.epoch
	g.committed = g.committed && g.assigned > 0 // a gang that starts anew passes the barrier as a whole
	kept := b.keptFor(g)
	missing, refusal := b.missingOf(g)
	var assignments []plan.Assignment
	if refusal == nil {
		assignments, refusal = plan.Gang(b.fleet, b.accounts, g.demand, b.claim(g, kept), missing, b.rejected(g, pod), now)
	}
	if refusal != nil {
		b.refuse(g, refusal)
		return refusal
	}
	g.refusal, g.planned = nil, true
	b.waiting.remove(g)
	g.deadline = now.Add(b.args.GangDeadline.Duration)
	for _, a := range assignments {
		m := g.members[a.Index]
		b.hold(m.pod.UID, a.Node, g.demand.GPUsPerPod, func(h *holding) { h.planned = true })
		b.advance(m, assigned, a.Node, payer{a.Payer, a.Relation})
		b.accounts.Open(leaseName(m.pod).String(), b.chargeOf(m, now))
	}
	return nil
}

// claim returns what a gang may claim to be paid for.
func (b *Book) claim(g *gang, kept map[budget.Key]int) plan.Claim {
	c := plan.ClaimOf(g.run)
	c.Kept = kept
	return c
}

// notYet refuses a gang for now: what stands in its way passes by itself.
func (g *gang) notYet(message string) *plan.Refusal {
	return &plan.Refusal{Reason: plan.NodesRejected, Owner: g.demand.Owner, Flavor: g.demand.Flavor, Message: message}
}

// keptFor returns the pods of a running Run that are gone, by who pays for them: the payers go on paying for their
// replacements (R8).
func (b *Book) keptFor(g *gang) map[budget.Key]int {
	kept := map[budget.Key]int{}
	for _, pod := range g.vacant {
		if charge, ok := b.accounts.Charge(vacancy(pod)); ok {
			kept[charge.Payer]++
		}
	}
	return kept
}

// missingOf lists the pods of a gang without a node, and the domain that each must lie in. It refuses while a member that
// decides the domain is on a node that the fleet does not know, or a lost member's Lease is open: that comes first. The room
// that was kept for the missing is theirs now.
func (b *Book) missingOf(g *gang) ([]plan.Missing, *plan.Refusal) {
	for _, pod := range g.vacant {
		if h := b.held[pod]; h != nil && h.leased {
			return nil, g.notYet("the Lease of a lost pod is still open; it is closed first")
		}
	}
	b.vacate(g)
	scope := g.demand.GroupOf
	if g.demand.OneDomain {
		scope = func(int) int { return 0 }
	}
	domains := map[int]string{}
	if g.demand.Confined || g.demand.OneDomain {
		for _, m := range g.members {
			if m.stage == unplaced || m.stage == finished {
				continue
			}
			domain, _, ok := b.fleet.Domain(m.node)
			if !ok {
				return nil, g.notYet(fmt.Sprintf("pod %s holds GPUs on node %s, which is gone; it is replaced first", m.pod.Name, m.node))
			}
			domains[scope(m.index)] = domain
		}
	}
	var out []plan.Missing
	for _, m := range g.members {
		if m.stage == unplaced {
			out = append(out, plan.Missing{Index: m.index, Domain: domains[scope(m.index)]})
		}
	}
	return out, nil
}

func (b *Book) refuse(g *gang, refusal *plan.Refusal) {
	if len(g.excluded) > 0 && refusal.AboutRoom() {
		refusal = rejectedNodes(g, refusal)
	}
	g.refusal = refusal
	b.waiting.add(g)
	b.reconcile(client(g.run))
}

// rejectedNodes says that other scheduling rules, not the lack of GPUs, keep a gang from its nodes.
func rejectedNodes(g *gang, r *plan.Refusal) *plan.Refusal {
	first := ""
	for node := range g.excluded {
		if first == "" || node < first {
			first = node
		}
	}
	r.Reason = plan.NodesRejected
	r.Message = fmt.Sprintf("%s; %d nodes were rejected by other rules, such as %s: %s", r.Message, len(g.excluded), first, g.excluded[first])
	return r
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
	m := b.members[pod]
	if m == nil || !m.gang.planned {
		return nil
	}
	m.gang.planned = false
	var out []*corev1.Pod
	for _, other := range m.gang.members {
		if other != nil && other != m && other.stage >= assigned && other.stage < bound && other.stage != reserved {
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

// Turned records that another scheduling rule turned a pod's node down, or the pod as a whole when node is empty. The
// gang gives everything back and is planned anew without the node.
func (b *Book) Turned(pod types.UID, node, why string) {
	b.mu.Lock()
	defer b.unlock()
	m := b.members[pod]
	if m == nil || m.gang.run == nil {
		return
	}
	g := m.gang
	g.woken = false
	if node == "" {
		b.unwind(g)
		b.refuse(g, &plan.Refusal{Reason: plan.NodesRejected, Owner: g.run.Spec.Owner, Flavor: g.demand.Flavor, Message: why})
		return
	}
	g.excluded[node] = why
	if m.stage >= writing {
		return // the ledger pins the pod to the node; the Run controller ends it if it stays stuck
	}
	b.unwind(g)
	if lead := g.leader(); lead != nil {
		b.activate(lead.pod)
	}
}
