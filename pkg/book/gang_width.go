package book

import (
	"strconv"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// growing returns the width in GPUs that a gang is growing to by its status; 0 when it is not.
func (g *gang) growing() int32 {
	if g.shape == nil && g.started() && g.run.Status.Width != nil {
		return g.run.Status.Width.Growing
	}
	return 0
}

// told returns how many ranks there are by what those of a gang that starts have been told: that is how wide it starts.
// It is 0 when none has been told.
func (g *gang) told() int {
	if g.run == nil || g.shape != nil || g.started() || g.opportunistic() {
		return 0
	}
	for _, m := range g.active.members {
		if m == nil || m.stage < bound || m.leaving {
			continue
		}
		if ranks, err := strconv.Atoi(m.pod.Annotations[rqv1.AnnotationWorldSize]); err == nil && ranks > 0 {
			return ranks
		}
	}
	return 0
}

// settled returns the shape of a gang that has started, at the width that it was granted; of one that has not, at the
// width that its ranks have been told of or, if none has been, as it asks for.
func (g *gang) settled() plan.Demand {
	if ranks := g.told(); ranks > 0 {
		return g.full.At(min(ranks, g.full.Pods()))
	}
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

// narrowest returns the shape at the least width that the gang may start at now (R16): not below what pods that have a
// node or a Lease require. Once it has started, or its barrier is open, its width stands.
func (g *gang) narrowest() plan.Demand {
	if g.shape != nil || g.started() || g.committed {
		return g.demand
	}
	if g.told() > 0 {
		return g.settled()
	}
	return g.full.At(g.full.Atop(g.placedWidth()))
}

// missing returns the number of the gang's pods that need room together: those without a node, at its least width. Of
// spares or belated ranks alone, one has use of any room.
func (g *gang) missing() int {
	least := g.narrowest()
	active, spares := least.Pods()-g.active.assigned, least.Spares()-g.spares.assigned
	switch {
	case !g.started():
		return active + spares
	case g.refusal != nil && g.refusal.Belated:
		return 1
	case active > 0:
		return active
	}
	return min(spares, 1)
}

// needs returns how many free GPUs the gang needs together, beside those that are kept for it.
func (g *gang) needs() int { return max(0, g.missing()*g.demand.GPUsPerPod-g.requeue.gpus()) }

// wants returns how many shards of a gang have no place yet.
func (g *gang) wants() int { return g.active.size - g.active.assigned }

// allowedShards returns how many pods a Run of shards may have; 0 for any other Run.
func (g *gang) allowedShards() int {
	if !g.opportunistic() {
		return 0
	}
	return max(g.shards, g.active.assigned+waitingShards)
}

// nextWidth returns the width in GPUs that is one step up, as long as the Run desires it; 0 when it does not.
func (g *gang) nextWidth() int32 {
	w, m := g.run.Status.Width, g.run.Spec.Malleable
	if w == nil || m == nil || w.Granted == 0 {
		return 0
	}
	if to := w.Granted + m.StepGPUs; to <= g.run.Spec.Desired() {
		return to
	}
	return 0
}

// grows reports whether what is to be planned of a gang is the cohort that it grows by: all else of it has its places.
func (g *gang) grows() bool {
	first := g.firstRank()
	return g.growing() > 0 && (first == nil || first.joins())
}

// contests reports whether a Run is about to be tried, or has lost ranks that are, or has not said yet where it intends
// to be.
func (g *gang) contests() bool {
	if g.started() {
		return g.woken && !g.grows() && g.active.first() != nil
	}
	retried := g.woken && g.refusal != nil && g.leader() != nil
	unheard := g.reservation != nil && g.undated() && !g.underWay()
	return retried || unheard
}

// lacks lists the pods beyond the width of a gang that have no places at a greater one, whether or not they exist.
func (g *gang) lacks(d plan.Demand, domains map[int]string) []plan.Missing {
	var out []plan.Missing
	settled := g.settled()
	for _, pod := range d.EveryPod() {
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

// waitingShards is how many shards wait of a Run that there is no room for: one, so that the API server has seen such a
// pod and the other plugins can be asked about it.
const waitingShards = 1

// beyondWidth is why a pod that takes no part in its gang's plan is held back.
const beyondWidth = "beyond the width that the Run starts at"

// joins reports whether the member belongs to the cohort that its gang grows by (R23).
func (m *member) joins() bool {
	return m.gang.growing() > 0 && !m.gang.settled().Has(m.part)
}

// bound narrows what a gang asks for that has not started to what all nodes of its type have: a pod is made for each
// rank that the gang might start with, and a malleable Run may ask for a million where it needs one. Pods that exist
// are not beyond it, nor what they have been told of. Once it has started it grows as any other.
func (g *gang) bound(gpus int) {
	g.bounded, g.boundTo = false, gpus
	if g.shape != nil || g.started() || g.opportunistic() {
		return
	}
	within := g.full.Holding(gpus, max(len(g.active.members), g.told()))
	g.bounded = within != g.full
	g.full = within
}
