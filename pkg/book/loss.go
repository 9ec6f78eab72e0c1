package book

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

func (b *Book) stands(name string) bool {
	node := b.nodes[name]
	_, lost := b.lossOf(name)
	return node != nil && !b.losing[name] && !lost && !b.evident(node)
}

// evident reports whether a node says of itself that it is lost: what happens to its pods happens for that, also before it is
// recorded. A sign that is held back says nothing.
func (b *Book) evident(node *corev1.Node) bool {
	reason, _, lost := nodeloss.Rules{Conditions: b.args.NodeLossConditions}.Evident(node)
	return lost && (reason.Certain() || !b.heldBack[node.Name])
}

// lossOf reports whether a node that exists is recorded as lost, and when.
func (b *Book) lossOf(name string) (time.Time, bool) {
	if node := b.nodes[name]; node != nil {
		return nodeloss.Recorded(node)
	}
	return time.Time{}, false
}

// Recorded reports whether a node is recorded as lost, or is about to be.
func (b *Book) Recorded(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, lost := b.lossOf(name)
	return lost || b.losing[name]
}

// LostAt returns when a node was recorded as lost; zero when it is not, or the record does not say.
func (b *Book) LostAt(name string) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	at, _ := b.lossOf(name)
	return at
}

// Lose counts nodes as lost from now on, all at once, so that nobody is moved from one of them to another. The record on each
// of them is to follow, and has the Runs looked at; or Keep.
func (b *Book) Lose(names []string) {
	b.setLosing(names, true)
}

// Keep counts nodes as standing again whose loss could not be recorded.
func (b *Book) Keep(names []string) {
	b.setLosing(names, false)
}

func (b *Book) setLosing(names []string, losing bool) {
	b.mu.Lock()
	defer b.unlock()
	for _, name := range names {
		if b.losing[name] = losing; !losing {
			delete(b.losing, name)
		}
		if node := b.nodes[name]; node != nil {
			b.fleet.SetNode(b.inFleet(node))
			b.wakeNodes(b.flavorOf(node))
		}
	}
}

// inFleet returns what the packer is to know of a node.
func (b *Book) inFleet(node *corev1.Node) topology.Node {
	return topology.Node{Name: node.Name, Labels: node.Labels, Flavor: b.flavorOf(node), GPUs: b.gpusOf(node),
		Unschedulable: !b.serves(node)}
}

// serves reports whether anything may be placed on a node: it stands, without a sign of loss, and is not cordoned.
func (b *Book) serves(node *corev1.Node) bool {
	return !node.Spec.Unschedulable && b.stands(node.Name) && !b.heldBack[node.Name]
}

// reconcileOn has the Runs looked at that have pods on some nodes. Places on those that do not stand, which no Lease holds yet,
// are taken back, each with the rest of its gang's: a gang that took them would start with a pod missing.
func (b *Book) reconcileOn(nodes map[string]bool) {
	concerned := map[types.NamespacedName]bool{}
	var adrift []*member
	for _, m := range b.members {
		if !nodes[m.node] {
			continue
		}
		if m.gang.run != nil {
			concerned[keyOf(m.gang.run)] = true
		}
		if (m.stage == assigned || m.stage == reserved) && !b.stands(m.node) {
			adrift = append(adrift, m)
		}
	}
	slices.SortFunc(adrift, func(x, y *member) int { return cmp.Compare(x.pod.UID, y.pod.UID) })
	for _, m := range adrift {
		if m.stage == reserved && m.extra() {
			b.reject(m.pod.UID)
		}
		b.giveBack(m) // nothing, if its gang's places have been taken back by now
		b.wake(m.gang)
	}
	for run := range concerned {
		b.reconcile(run)
	}
}

// widthWithout returns the widest width in pods below its own at which a gang that lost ranks could go on, once the pods beyond
// it have given up their room; 0 when there is none (R27). Widths are tried as they are given up, one step at a time.
func (b *Book) widthWithout(g *gang, missing []plan.Missing, rejected func(string) bool, now time.Time) int {
	if g.demand.StepPods == 0 || !g.started() {
		return 0
	}
	for width := g.demand.Pods() - g.demand.StepPods; width >= g.demand.LeastPods; width -= g.demand.StepPods {
		d := g.full.At(width)
		if within := d.Within(missing); len(within) == 0 || b.fitsWithout(g, d, within, rejected, now) {
			return width
		}
	}
	return 0
}

// fitsWithout reports whether missing ranks would fit a narrower shape of their gang if the pods beyond it were gone.
func (b *Book) fitsWithout(g *gang, d plan.Demand, missing []plan.Missing, rejected func(string) bool, now time.Time) bool {
	var gone []*member
	for m := range g.all() {
		if m.placed() && !d.Has(m.part) {
			gone = append(gone, m)
			b.fleet.Give(m.node, g.demand.GPUsPerPod)
		}
	}
	claim := b.claim(g, b.keptFor(g, missing))
	_, refusal := plan.Gang(b.fleet, b.accounts, d, claim, missing, rejected, now)
	for _, m := range gone {
		b.fleet.Take(m.node, g.demand.GPUsPerPod)
	}
	return refusal == nil
}

// stillLeaving reports whether pods beyond the width of a gang have not given up their room yet.
func (b *Book) stillLeaving(g *gang) bool {
	for _, s := range [...]*squad{&g.active, &g.spares} {
		for _, m := range s.members[min(s.size, len(s.members)):] {
			if m != nil && m.placed() {
				return true
			}
		}
	}
	for i := range g.vacant {
		if h := b.held[g.vacant[i].pod]; g.vacant[i].index == anyRank && h != nil && h.leased {
			return true
		}
	}
	return false
}

// withoutRoom says what becomes of a gang whose missing ranks were refused. Those that wait for the room of pods beyond the
// width get it together, once all of it is there. When there is none to wait for, a running gang is told at which width it
// could go on. A cohort waits for nothing: the gang goes on without it.
func (b *Book) withoutRoom(g *gang, pod *corev1.Pod, missing []plan.Missing, refusal *plan.Refusal, now time.Time) *plan.Refusal {
	switch {
	case !g.started(), g.grows():
		return refusal
	case b.stillLeaving(g):
		return g.notYet(fmt.Sprintf("%s; pods beyond the width of the Run are leaving", refusal.Message))
	case slices.ContainsFunc(g.vacant, func(v vacancy) bool { return v.index == anyRank }):
		b.vacate(g, func(v *vacancy) bool { return v.index == anyRank })
		return b.planGang(g, pod, now)
	}
	g.narrower = b.widthWithout(g, missing, b.rejected(g, pod), now)
	return refusal
}
