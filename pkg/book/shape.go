package book

import (
	"cmp"
	"slices"

	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// shape works the gang's demand out. Pods that exist fix the size of a pod, whatever the nodes have become since: active ones
// by what they request, spares by what was found before.
func (b *Book) shape(g *gang) {
	if g.run == nil {
		return
	}
	gpus := b.podGPUs(podOf(g.run))
	if i := slices.IndexFunc(g.active.members, func(m *member) bool { return m != nil }); i >= 0 {
		gpus = b.podGPUs(g.active.members[i].pod)
	} else if g.spares.present > 0 {
		gpus = cmp.Or(g.full.GPUsPerPod, gpus)
	}
	was := g.shape
	g.full, g.shape = plan.DemandOf(&g.run.Spec, gpus, b.largestNode(g.run.Spec.Resources.GPUType))
	if all := b.gpusOfAll(g.full.Flavor); g.shape == nil && g.active.present == 0 && all == 0 {
		g.shape = plan.UnknownType(g.full.Least())
	} else if g.shape == nil && g.active.present == 0 && g.full.Least().HeldGPUs() > all {
		g.shape = plan.TooWide(g.full.Least(), all) // before any of its pods is made, which may be a million
	}
	b.bound(g, b.gpusOfAll(g.full.Flavor))
	b.resize(g, g.reshaped())
	if g.shape != nil {
		g.refusal = g.shape
		if g.promise != nil {
			b.setPromise(g, nil) // what cannot start keeps others from nothing
		}
		b.waiting.add(g)
	} else if g.active.present == 0 || was != nil && g.refusal == was {
		g.refusal = nil // it has not been tried since, or was not when the nodes were not known yet
		g.asked = true  // nor asked who pays
		b.waiting.remove(g)
	}
}

// demandOf brings the shape of a gang that has none, or asks for less than its Run, up to date with the nodes that there are.
func (b *Book) demandOf(g *gang) {
	if g.shape != nil {
		if b.shape(g); g.complete() {
			b.wake(g)
		}
	} else if g.bounded && g.boundTo != b.gpusOfAll(g.full.Flavor) {
		b.shape(g)
	}
}

// bound narrows what a gang asks for that has not started to what all nodes of its type have: a pod is made for each rank that
// the gang might start with, and a malleable Run may ask for a million where it needs one. Pods that exist are not beyond it.
// Once it has started it grows as any other.
func (b *Book) bound(g *gang, gpus int) {
	g.bounded, g.boundTo = false, gpus
	if g.shape != nil || g.started() || g.opportunistic() {
		return
	}
	within := g.full.Holding(gpus, len(g.active.members))
	g.bounded = within != g.full
	g.full = within
}

// boundAgain takes the bound of gangs anew when this process begins to decide: their Runs may have come before all nodes and pods.
func (b *Book) boundAgain() {
	for _, g := range b.gangs {
		if g.bounded {
			b.shape(g)
		}
	}
}
