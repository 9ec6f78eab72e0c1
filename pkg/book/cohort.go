package book

import (
	"fmt"
	"slices"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// cohort plans the pods that a gang lacks at a width, spares and all; nil when they do not fit or nobody pays.
func (b *Book) cohort(g *gang, to int32, now time.Time) []plan.Assignment {
	domains, refusal := b.domainsOf(g)
	pods := g.active.between(0, 1)
	if refusal != nil || len(pods) == 0 || pods[0] == nil {
		return nil
	}
	d := g.full.At(int(to) / g.full.GPUsPerPod)
	missing := g.lacks(d, domains)
	if len(missing) == 0 {
		return nil
	}
	excluded := b.unintended(b.rejected(g, pods[0].pod), now) // its pods are alike but for their ranks
	assignments, _ := plan.Gang(b.fleet, b.accounts, d, b.claim(g, nil), missing, excluded, now)
	return assignments
}

// lacks lists the pods beyond the width of a gang that have no places at a greater one, whether or not they exist.
func (g *gang) lacks(d plan.Demand, domains map[int]string) []plan.Missing {
	var out []plan.Missing
	settled := g.settled()
	for _, pod := range everyPod(d) {
		known := g.squad(pod.Part).between(pod.Index, pod.Index+1)
		if settled.Has(pod.Part) || len(known) > 0 && known[0] != nil && known[0].stage > unplaced {
			continue
		}
		pod.Domain = domains[0]
		if !d.OneDomain {
			pod.Domain = domains[d.Group(pod.Part)]
		}
		out = append(out, pod)
	}
	return out
}

// earmark takes the room and the money of a cohort's places until the functions that it returns give them back, so that no two Runs
// are let grow into the same.
func (b *Book) earmark(g *gang, places []plan.Assignment, now time.Time) []func() {
	var undo []func()
	for i, a := range places {
		m := &member{gang: g, part: a.Part, payer: payer{a.Payer, a.Relation}}
		name, gpus := fmt.Sprintf("growth/%s/%d", g.run.UID, i), g.full.GPUsPerPod
		b.accounts.Open(name, b.chargeOf(m, now))
		b.fleet.Take(a.Node, gpus)
		undo = append(undo, func() {
			b.accounts.Void(name)
			b.fleet.Give(a.Node, gpus)
		})
	}
	return undo
}

// unintended returns a test for the nodes that a Run may not grow onto: those excluded anyway, and those that a Reservation
// intends whose date is no further off than the lead (R23).
func (b *Book) unintended(excluded func(node string) bool, now time.Time) func(node string) bool {
	if len(b.intended) == 0 {
		return excluded
	}
	near := now.Add(b.args.ReservationLead.Duration)
	return func(node string) bool {
		return excluded != nil && excluded(node) ||
			slices.ContainsFunc(b.intended[node], func(g *gang) bool { return !g.promise.At.After(near) })
	}
}
