package book

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// beyondWidth is why a pod that takes no part in its gang's plan is held back.
const beyondWidth = "beyond the width that the Run starts at"

// settled returns the shape of a gang that has started, at the width that it was granted; of one that has not, as it asks
// for.
func (g *gang) settled() plan.Demand {
	if g.shape == nil && g.started() && g.run.Status.Width != nil && g.run.Status.Width.Granted > 0 {
		return g.full.At(int(g.run.Status.Width.Granted) / g.full.GPUsPerPod)
	}
	return g.full
}

// granted returns the shape of a gang likewise, with the cohort that it grows by.
func (g *gang) granted() plan.Demand {
	if to := g.growing(); to > 0 {
		return g.full.At(int(to) / g.full.GPUsPerPod)
	}
	return g.settled()
}

// reshaped returns the width that a gang keeps when its Run is edited: while a start is under way, the planned one.
func (g *gang) reshaped() plan.Demand {
	if g.shape == nil && !g.started() && g.underWay() {
		return g.full.At(min(g.demand.Pods(), g.full.Pods()))
	}
	return g.granted()
}

// resize changes the width of a gang. Pods beyond it hold nothing but what the ledger or their node says.
func (b *Book) resize(g *gang, d plan.Demand) {
	if g.demand == d {
		return
	}
	before := g.demand.Pods()
	g.demand = d
	b.resizeSquad(&g.active, d.Pods())
	b.resizeSquad(&g.spares, d.Spares())
	b.vacate(g, from(d.Pods()))
	maps.DeleteFunc(g.kept, func(rank int, _ budget.Charge) bool { return rank >= d.Pods() })
	if before > 0 && before != d.Pods() && g.run != nil {
		b.reconcile(keyOf(g.run)) // it may have too many pods now, or too few
	}
}

func (b *Book) resizeSquad(s *squad, size int) {
	s.resize(size)
	for _, m := range s.members[min(size, len(s.members)):] {
		if m == nil || m.stage != assigned && m.stage != reserved {
			continue
		}
		if m.stage == reserved {
			b.reject(m.pod.UID)
		}
		b.release(m)
	}
}

// narrowest returns the shape at the least width that the gang may start at now (R16): not below what pods that have a node
// or a Lease require. Once it has started, or its barrier is open, its width stands.
func (g *gang) narrowest() plan.Demand {
	if g.shape != nil || g.started() || g.committed {
		return g.demand
	}
	return g.full.At(g.full.Atop(g.placedWidth()))
}

// placedWidth returns the number of pods that a gang has at least by the highest index of one with a node or a Lease.
func (g *gang) placedWidth() int {
	pods := 0
	if g.active.assigned > 0 {
		pods = g.active.highest() + 1
	}
	if g.spares.assigned > 0 && g.full.Confined {
		pods = max(pods, (g.full.Group(rank.Part{Index: g.spares.highest(), Spare: true})+1)*g.full.PodsPerGroup)
	}
	return pods
}

// highest returns the highest index of a member with a node that takes part; -1 when none has one.
func (s *squad) highest() int {
	for i := min(s.size, len(s.members)) - 1; i >= 0; i-- {
		if m := s.members[i]; m != nil && m.stage > unplaced {
			return i
		}
	}
	return -1
}

// planGang places all missing pods at once, or none. A gang that starts gets the widest width that fits (R16).
func (b *Book) planGang(g *gang, pod *corev1.Pod, now time.Time) *plan.Refusal {
	if !g.started() && !g.committed {
		b.resize(g, g.full)
		if !g.complete() {
			return g.notYet("waiting for the Run's other pods to be created")
		}
	}
	missing, refusal := b.missingOf(g)
	if refusal != nil {
		return refusal
	}
	b.openRoom(g)
	defer b.closeRoom(g)
	rejected := b.rejected(g, pod)
	seated, missing := b.takeSeats(g, missing, rejected)
	if refusal := b.astray(g, missing); refusal != nil {
		return b.withoutRoom(g, pod, missing, refusal, now)
	}
	claim := b.claim(g, b.keptFor(g, missing))
	fits := func(width int) ([]plan.Assignment, *plan.Refusal) {
		d := g.full.At(width)
		within := d.Within(missing)
		if len(within) == 0 {
			return nil, nil // all of them have their nodes
		}
		return b.placeAside(g, d, claim, within, rejected, now)
	}
	least := g.narrowest().Pods()
	most := b.fleet.FreeOf(g.full.Flavor)/g.full.GPUsPerPod + g.active.assigned + g.spares.assigned + len(seated)
	width, assignments, refusal := g.demand.Widest(least, most, fits)
	if refusal != nil {
		b.blame(g, pod, refusal, func(rejected func(string) bool) bool {
			d := g.full.At(least)
			_, short := plan.Gang(b.fleet, b.accounts, d, claim, d.Within(missing), rejected, now)
			return short == nil
		})
		return b.withoutRoom(g, pod, missing, refusal, now)
	}
	b.resize(g, g.full.At(width))
	assignments = b.besideShards(g.full.Flavor, assignments, func() ([]plan.Assignment, *plan.Refusal) {
		return plan.Gang(b.fleet, b.accounts, g.demand, claim, g.demand.Within(missing), b.outOfTheWay(g, rejected, now), now)
	})
	g.planned = true
	g.deadline = now.Add(b.args.GangDeadline.Duration)
	b.vacateAll(g) // what is kept for the gang and what it gets would count twice, and shards leave that are in nobody's way
	b.assume(g, slices.Concat(seated, assignments), now)
	b.sit(g, seated)
	g.narrower = 0
	return nil
}
