package book

import (
	"cmp"
	"fmt"
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// Outlook is what would happen to a Run if it were submitted now.
type Outlook struct {
	// GPUs that it would start with at once, spares apart; 0 when it would wait. Places are where.
	GPUs, GPUsPerPod int
	Places           []plan.Assignment
	// Refusal is why it would wait, and Promise when it would start; nil when it would get no date.
	Refusal *plan.Refusal
	Promise *forecast.Promise
	// Changes to the Run would make it start now, each by itself.
	Changes []Change
}

// Change is a change to a Run that would make it start now.
type Change struct {
	// What to set, such as `resources.totalGPUs: 64`, and the GPUs that the Run would start with.
	What string
	GPUs int
}

// WhatIf says what would happen if a Run were submitted now. It changes nothing. A Run of the same UID, if there is one, is
// left aside as long as it waits.
func (b *Book) WhatIf(run *rqv1.Run, now time.Time) Outlook {
	b.mu.Lock()
	defer b.mu.Unlock()
	if run.Spec.Opportunistic {
		return b.fillWith(run, now)
	}
	places, g, refusal := b.tryOut(run, now)
	if refusal == nil {
		return Outlook{GPUs: g.demand.GPUs(), GPUsPerPod: g.demand.GPUsPerPod, Places: places}
	}
	out := Outlook{Refusal: refusal}
	if g.shape == nil {
		least := g.full.Least()
		state := b.stateFor(g, now)
		ask := forecast.Ask{Demand: least, Claim: b.claim(g, nil), Missing: everyPod(least), Excluded: b.rejected(g, podOf(run))}
		if out.Promise, refusal = forecast.Earliest(state, ask); refusal != nil {
			out.Refusal = refusal
		}
	}
	if g.shape == nil {
		out.Refusal.Advice = plan.Advise(b.accounts, g.full.Least(), b.claim(g, nil), false, out.Refusal, now)
	}
	out.Changes = b.changes(g, now)
	return out
}

// tryOut plans a Run as if it had just been submitted, at the widest width that fits.
func (b *Book) tryOut(run *rqv1.Run, now time.Time) ([]plan.Assignment, *gang, *plan.Refusal) {
	g := b.newcomer(run, now)
	if g.shape != nil {
		return nil, g, g.shape
	}
	claim, rejected := b.claim(g, nil), b.rejected(g, podOf(run))
	fits := func(width int) ([]plan.Assignment, *plan.Refusal) {
		d := g.full.At(width)
		return b.placeAside(g, d, claim, everyPod(d), rejected, now)
	}
	width, places, refusal := g.full.Widest(g.full.LeastPods, g.full.Pods(), fits)
	g.demand = g.full.At(width)
	return places, g, refusal
}

// newcomer returns the gang of a Run that has just been submitted.
func (b *Book) newcomer(run *rqv1.Run, now time.Time) *gang {
	g := &gang{run: run, excluded: map[string]string{}, prospect: prospect{since: now}}
	g.full, g.shape = plan.DemandOf(&run.Spec, b.podGPUs(podOf(run)), b.largestNode(run.Spec.Resources.GPUType))
	g.demand = g.full
	return g
}

// fillWith says how many shards of an opportunistic Run would run if it were submitted now (R15).
func (b *Book) fillWith(run *rqv1.Run, now time.Time) Outlook {
	g := b.newcomer(run, now)
	if g.shape != nil {
		return Outlook{Refusal: g.shape}
	}
	places, refusal := plan.Fill(b.accounts, g.demand, b.claim(g, nil), indexes(g.demand.Pods()), b.rooms(g, podOf(run), b.idleNodes()[g.full.Flavor]), now)
	return Outlook{GPUs: len(places) * g.demand.GPUsPerPod, GPUsPerPod: g.demand.GPUsPerPod, Places: places, Refusal: refusal}
}

func indexes(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// podOf returns a pod as a Run's template has it.
func podOf(run *rqv1.Run) *corev1.Pod {
	pod := &corev1.Pod{}
	if run.Spec.Template != nil {
		pod.Spec = run.Spec.Template.Spec
	}
	return pod
}

// everyPod lists all pods of a Run, as none of them has a node.
func everyPod(d plan.Demand) []plan.Missing {
	var out []plan.Missing
	for i := range d.Pods() {
		out = append(out, plan.Missing{Part: rank.Part{Index: i}})
	}
	for i := range d.Spares() {
		out = append(out, plan.Missing{Part: rank.Part{Index: i, Spare: true}})
	}
	return out
}

// changes looks for single changes to a Run that would make it start now: fewer GPUs, no spares, another type. What would have it
// paid for is the advice on its refusal.
func (b *Book) changes(g *gang, now time.Time) []Change {
	var out []Change
	run := g.run
	try := func(what string, edit func(*rqv1.RunSpec)) {
		edited := run.DeepCopy()
		edit(&edited.Spec)
		_, g, refusal := b.tryOut(edited, now)
		if refusal == nil {
			out = append(out, Change{What: what, GPUs: g.demand.GPUs()})
		}
	}
	if total := b.narrower(g, now); total > 0 {
		try(fmt.Sprintf("resources.totalGPUs: %d", total), func(s *rqv1.RunSpec) { s.Resources.TotalGPUs, s.Malleable = total, nil })
	}
	if cmp.Or(value(run.Spec.Spares), value(run.Spec.SparesPerGroup)) > 0 {
		try("no spares", func(s *rqv1.RunSpec) { s.Spares, s.SparesPerGroup = nil, nil })
	}
	for _, flavor := range b.fleet.Flavors() {
		if flavor != run.Spec.Resources.GPUType {
			try("resources.gpuType: "+flavor, func(s *rqv1.RunSpec) { s.Resources.GPUType = flavor })
		}
	}
	return out
}

// narrower returns the most GPUs that a Run of fewer than it asks for would start with now, in whole groups or pods; 0 when
// not even one would.
func (b *Book) narrower(g *gang, now time.Time) int32 {
	unit := int32(1)
	if l := g.run.Spec.Locality; l != nil && l.GroupGPUs != nil {
		unit = *l.GroupGPUs
	} else if g.shape == nil {
		unit = int32(g.full.GPUsPerPod)
	}
	units := sort.Search(int((g.run.Spec.Resources.TotalGPUs-1)/unit), func(i int) bool {
		edited := g.run.DeepCopy()
		edited.Spec.Resources.TotalGPUs, edited.Spec.Malleable = int32(i+1)*unit, nil
		_, _, refusal := b.tryOut(edited, now)
		return refusal != nil
	})
	return int32(units) * unit
}

func value(n *int32) int32 {
	if n == nil {
		return 0
	}
	return *n
}

// TakeOver has gangs that wait be promised what their Reservations say, for a book that reads the objects and decides
// nothing.
func (b *Book) TakeOver() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, g := range b.gangs {
		if g.run == nil || g.reservation == nil || g.run.Status.Phase != rqv1.RunPending || g.shape != nil {
			continue
		}
		b.setPromise(g, b.recorded(g))
		b.waiting.add(g)
	}
}

// recorded returns what a gang's Reservation promises. It names nodes; how many pods are on each follows from their size.
func (b *Book) recorded(g *gang) *forecast.Promise {
	spec := &g.reservation.Spec
	p := &forecast.Promise{At: spec.EarliestStart.Time, Payers: spec.PayingEnvelopes, Conflicts: g.reservation.Status.ConflictSet}
	if spec.IntendedSlice == nil {
		return p
	}
	least := g.full.Least()
	left := least.HeldGPUs()
	for _, name := range spec.IntendedSlice.Nodes {
		if node := b.nodes[name]; node != nil && left > 0 {
			gpus := min(left, b.gpusOf(node)/least.GPUsPerPod*least.GPUsPerPod)
			p.Nodes = append(p.Nodes, resolver.Holding{Node: name, GPUs: gpus})
			left -= gpus
		}
	}
	return p
}
