package book

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// shaper works out what gangs ask for.
type shaper struct {
	nodes   *nodeTable
	roster  *roster
	waiting *waitlist
	agenda  *agenda
	seats   *seating
	places  *placement
	now     time.Time // of the last look, or the last edge of a window if that was later
}

// footing is what the shape of a gang rests on: what there is of its flavor while nobody holds any, when Budgets last
// came to pay otherwise, and where that depends on GPU-hours that are spent meanwhile, which minute it is.
type footing struct {
	fleet  *topology.Blocks
	funds  int64
	minute int64
}

// reshape works the gang's demand out. Pods that exist fix the size of a pod and the resource that it requests,
// whatever the nodes have become since: active ones by what they request, spares by what was found before.
func (z *shaper) reshape(g *gang) {
	if g.run == nil {
		return
	}
	of := z.nodes.resourceOf(g.run.Spec.Resources.GPUType)
	model := g.model()
	gpus, beside := z.nodes.podGPUs(model), z.nodes.kinds.besideGPUs(model)
	if i := slices.IndexFunc(g.active.members, func(m *member) bool { return m != nil }); i >= 0 {
		leader := g.active.members[i]
		gpus, beside = z.nodes.podGPUs(leader.pod), leader.beside
		g.resource = cmp.Or(z.nodes.asksFor(leader.pod), of)
	} else if g.spares.present > 0 || g.started() || g.over() || z.keepsSize(g) {
		gpus = cmp.Or(int(g.run.Status.GPUsPerPod), g.full.GPUsPerPod, gpus)
		g.resource = cmp.Or(g.resource, of)
	} else {
		g.resource = of
	}
	was := g.shape
	g.judgedOn = footing{}
	g.full, g.shape = z.shapeFor(g, gpus)
	g.full.Beside = beside
	if mistaken := z.mistaken(g, of); mistaken != nil {
		g.shape = mistaken
	}
	if g.shape == nil && g.active.present == 0 {
		g.shape = z.beyondAll(g) // before any of its pods is made, which may be a million
	}
	g.bound(z.nodes.gpusOfAll(g.full.Flavor))
	z.places.resize(g, g.reshaped())
	z.waiting.note(g)
	if g.over() || g.suspended() {
		return // it waits for nothing, and what its end is told by is its demand
	}
	if g.shape != nil {
		g.refusal = g.shape
		if g.promise != nil {
			z.agenda.setPromise(g, nil) // what cannot start keeps others from nothing
		}
		z.waiting.add(g)
	} else if g.active.present == 0 || was != nil && g.refusal == was {
		g.refusal = nil // it has not been tried since, or was not when the nodes were not known yet
		g.asked = true  // nor asked who pays
		z.waiting.remove(g)
	}
}

// beyondAll refuses a gang that asks for more than all nodes of its flavor have together, in pieces as large as its
// pods where it says how large they are; nil where it does not.
func (z *shaper) beyondAll(g *gang) *plan.Refusal {
	least, each := g.full.Least(), 1
	if z.fixed(g) {
		each = g.full.GPUsPerPod
	}
	all, largest := z.nodes.inPiecesOf(each, g.full.Flavor)
	switch {
	case largest == 0:
		return plan.UnknownType(least)
	case largest < each:
		return plan.PodTooLarge(least, largest)
	case least.HeldGPUs() > all:
		return plan.TooWide(least, all, z.nodes.fleet.Whole(g.full.Flavor))
	}
	return nil
}

// shapeFor returns the shape that a gang has on the nodes that there are, by those who pay there, and notes that it is
// shaped for these, where nothing fixes the size of its pods.
func (z *shaper) shapeFor(g *gang, gpus int) (plan.Demand, *plan.Refusal) {
	fleet := z.nodes.fleet.Whole(g.run.Spec.Resources.GPUType)
	if g.over() {
		return plan.DemandOf(&g.run.Spec, gpus, fleet, nil) // nobody pays for it any more
	}
	payers := z.nodes.payers(z.now)
	d, refusal := plan.DemandOf(&g.run.Spec, gpus, fleet, payers)
	g.shapedFor = footing{}
	if !g.sized() {
		g.spends = payers.Spends
		g.shapedFor = z.footingOf(g)
	}
	return d, refusal
}

func (z *shaper) footingOf(g *gang) footing {
	on := footing{fleet: z.nodes.fleet.Whole(g.run.Spec.Resources.GPUType), funds: z.waiting.funds}
	if g.spends {
		on.minute = z.now.Unix() / 60
	}
	return on
}

// wearsOff reports whether a gang that waits may have been shaped for GPU-hours that have been spent by now.
func (z *shaper) wearsOff(g *gang, now time.Time) bool {
	on := g.judgedOn
	if !g.sized() {
		on = g.shapedFor
	}
	return g.spends && g.waits() && !z.fixed(g) && on.minute != now.Unix()/60
}

// payers asks who pays on the nodes that there are.
func (t *nodeTable) payers(now time.Time) *plan.Payers {
	return &plan.Payers{Accounts: t.accounts, Fleet: t.fleet, Now: now}
}

// sized reports whether the size of the gang's pods stands: it has had its first one (R14).
func (g *gang) sized() bool { return g.active.present+g.spares.present > 0 || g.started() }

// resized reports whether a gang that has no pods yet would have pods of another size on the nodes that there are, and
// by those who pay there, by now: until the first of them is there nothing fixes it (R14) but room that is kept.
func (z *shaper) resized(g *gang) bool {
	if g.sized() || g.shapedFor == z.footingOf(g) || z.keepsSize(g) {
		return false
	}
	d, refusal := z.shapeFor(g, z.nodes.podGPUs(podOf(g.run)))
	return refusal == nil && d.GPUsPerPod != g.full.GPUsPerPod
}

// keepsSize reports whether a gang that is requeued keeps the size that its pods had: its room and money are kept for
// pods of that size, with which it can start. Its status says it where this process has not seen them.
func (z *shaper) keepsSize(g *gang) bool {
	return g.keepsRoom() && max(g.full.GPUsPerPod, int(g.run.Status.GPUsPerPod)) > 0 && !z.stunts(g)
}

// stunts reports whether the size of its pods keeps a gang from ever starting on the nodes that there are, or from
// being paid for there, by now, while another would not.
func (z *shaper) stunts(g *gang) bool {
	if on := z.footingOf(g); g.judgedOn != on || g.judged != g.full {
		payers := z.nodes.payers(z.now)
		g.stunted = plan.Outgrown(&g.run.Spec, g.full, on.fleet, payers)
		g.spends = payers.Spends
		g.judgedOn, g.judged = z.footingOf(g), g.full
	}
	return g.stunted
}

// outgrows reports whether the size of the pods that a gang waits with, none of which has a place, keeps it from ever
// starting on the nodes that there are, or from being paid for there, by now: those pods go, and the Run is planned as
// one that has none.
func (z *shaper) outgrows(g *gang) bool {
	placed := g.started() || g.underWay() || g.activates() || g.over()
	if g.refusal == nil || !g.sized() || placed || z.fixed(g) {
		return false
	}
	return z.stunts(g) && !z.nodes.awaited(g.full.Flavor)
}

// fixed reports whether a Run or its template says what size its pods have.
func (z *shaper) fixed(g *gang) bool {
	return g.run.Spec.Resources.GPUsPerPod != nil || z.nodes.podGPUs(podOf(g.run)) > 0
}

// mistaken refuses a gang whose pods would ask, or ask, for another resource than the nodes of its type have, which is
// of; nil where they do not. What it holds, it keeps.
func (z *shaper) mistaken(g *gang, of string) *plan.Refusal {
	switch {
	case g.active.present == 0:
		return z.nodes.mistaken(podOf(g.run), g.full)
	case g.resource == of || g.started() || g.underWay() || z.nodes.gpusOfAll(g.full.Flavor) == 0:
		return nil
	}
	return plan.OtherResource(g.full, fmt.Sprintf("its pods request %s, but nodes of type %s now offer %s"+
		": suspend the Run and resume it (spec.suspend) to have its pods created again", g.resource, g.full.Flavor, of))
}

// reshapeAll works out again what the gangs of a flavor ask for that have not started.
func (z *shaper) reshapeAll(flavor string) {
	for _, g := range z.roster.gangs {
		if g.run != nil && g.run.Spec.Resources.GPUType == flavor && !g.started() && !g.over() {
			z.reshape(g)
		}
	}
}

// boundAgain takes the bound of gangs anew when this process begins to decide: their Runs may have come before all
// nodes and pods. No width that they have had meanwhile has been planned.
func (z *shaper) boundAgain(now time.Time) {
	z.now = now
	for _, g := range z.roster.gangs {
		if g.run != nil && !g.started() && !g.over() {
			z.reshape(g)
			z.places.resize(g, g.granted())
		}
	}
}

// demandOf brings the shape of a gang that has none, or asks for less than its Run, up to date with the nodes that
// there are, and those who pay there.
func (z *shaper) demandOf(g *gang, now time.Time) {
	z.now = now
	if g.shape != nil {
		if z.reshape(g); g.complete() && !g.over() {
			z.waiting.wake(g)
		}
	} else if g.bounded && g.boundTo != z.nodes.gpusOfAll(g.full.Flavor) || z.resized(g) {
		z.reshape(g)
	}
	g.outgrown = z.outgrows(g)
}

// reconsider forgets why a running gang was refused: its ranks or its width have changed, and it is planned anew.
func (z *shaper) reconsider(g *gang) {
	if g.shape != nil {
		return
	}
	z.waiting.remove(g)
	g.refusal, g.narrower, g.denial = nil, 0, denial{}
	if g.active.whole() && g.firstRank() == nil {
		z.seats.vacate(g, func(v *vacancy) bool { return v.index == anyRank }) // no rank is left that wants it
	}
	if g.complete() {
		z.waiting.wake(g)
	}
}

// join gives a pod its part in the gang, in place of the pod that had it before.
func (z *shaper) join(g *gang, part rank.Part, pod *corev1.Pod) *member {
	s := g.squad(part)
	for len(s.members) <= part.Index {
		s.members = append(s.members, nil)
	}
	if old := s.members[part.Index]; old != nil && old.standIn {
		z.places.relieve(old, pod)
		return old
	} else if old != nil {
		z.places.drop(old)
	}
	m := &member{gang: g, part: part, pod: pod, beside: z.nodes.kinds.besideGPUs(pod)}
	s.members[part.Index] = m
	s.count(m, +1)
	s.lowest = min(s.lowest, part.Index)
	z.roster.members[pod.UID] = m
	s.present++
	if s.present == 1 && !part.Spare {
		z.reshape(g)
	}
	return m
}
