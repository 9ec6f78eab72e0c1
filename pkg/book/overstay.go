package book

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// Stuck is a pod that was to make room for others and is still there long after its grace period (R37).
type Stuck struct {
	Pod  types.NamespacedName
	Node string
	// Until is when it was to be gone at the latest.
	Until time.Time
	uid   types.UID
}

// String says what is stuck, in a part of a sentence.
func (s Stuck) String() string {
	return fmt.Sprintf("pod %s on node %s, which was to end by %s and is still there", s.Pod, s.Node, s.Until.UTC().Format(time.RFC3339))
}

// goesBy returns until when a pod that a gang waits for may stay. One that has not been told yet is about to be: it counts
// from when that was first seen. It returns false for a Lease whose pod is gone, which this process closes itself.
func (b *Book) goesBy(pod types.UID, h *holding, now time.Time) (time.Time, bool) {
	if told := b.toldToGo(pod); !told.IsZero() {
		return told, true
	}
	m := b.members[pod]
	if m == nil || m.stage == finished {
		return time.Time{}, false
	}
	if h.asked.IsZero() {
		h.asked = now
	}
	return h.asked.Add(max(b.graceOf(m.pod), b.args.NoticePeriod.Duration)), true
}

// overstayed reports whether a pod that others wait for should be long gone.
func (b *Book) overstayed(pod types.UID, now time.Time) bool {
	h := b.held[pod]
	if h == nil {
		return false
	}
	until, ok := b.goesBy(pod, h, now)
	return ok && !now.Before(until.Add(overstay))
}

// hangs reports whether a pod has been told to go and should be long gone: who has it cut gains nothing.
func (m *member) hangs(now time.Time) bool {
	at := m.pod.DeletionTimestamp
	return at != nil && !now.Before(at.Add(overstay))
}

// goRound plans the gangs again that wait for pods which should be long gone: what these hold is not going to be free (R37).
func (b *Book) goRound(now time.Time) {
	waits := false
	for _, g := range b.gangs {
		waits = waits || g.awaiting > 0 && g.activation == nil // else nobody has been told to go yet
		if len(g.room.held) > 0 && !now.Before(g.room.until) {
			b.giveUpRoom(g)
		}
	}
	if !waits || !b.open {
		return
	}
	var stuck []types.UID
	for pod, h := range b.held {
		if slices.ContainsFunc(h.awaitedBy, func(g *gang) bool { return g.activation == nil }) && b.overstayed(pod, now) {
			stuck = append(stuck, pod)
		}
	}
	slices.Sort(stuck)
	var held []*gang
	for _, pod := range stuck {
		h := b.held[pod]
		for _, g := range h.awaitedBy {
			if g.activation != nil || g.run == nil {
				continue
			}
			if g.activating() {
				g.stuck = append(g.stuck, b.stuckAmong([]types.UID{pod}, now)...)
			}
			if !slices.Contains(held, g) {
				held = append(held, g)
			}
		}
		if h.shard { // from now on it is in everybody's way
			b.hold(pod, "", 0, func(h *holding) { h.shard, h.stays = false, true })
		}
	}
	slices.SortFunc(held, func(x, y *gang) int { return cmp.Or(x.activatedAt().Compare(y.activatedAt()), byAge(x, y)) })
	places := map[*gang][]resolver.Holding{}
	for _, g := range held {
		places[g] = g.placesOf()
		b.unwind(g)
	}
	for _, g := range held {
		lead := g.leader()
		if !g.complete() || lead == nil {
			continue
		}
		if !g.activating() {
			b.wake(g) // also of a Run that runs, whose ranks are replaced
			continue
		}
		if b.resume(g, lead.pod, now); g.activation != nil && !g.vain() { // it is decided anew; what has been freed for it stays its own until then
			b.keepFor(g, places[g], now.Add(b.args.GangDeadline.Duration))
		}
	}
}

// activatedAt returns when it was decided who is cut for a gang; zero if nobody is.
func (g *gang) activatedAt() time.Time {
	if g.activating() && g.reservation.Status.ActivatedAt != nil {
		return g.reservation.Status.ActivatedAt.Time
	}
	return time.Time{}
}

// stuckFor returns the pods that were to make room for a gang and should be long gone, by name: those that are cut by its
// activation, and those that it was known to wait for.
func (b *Book) stuckFor(g *gang, a *Activation, now time.Time) []Stuck {
	pods := b.victims(a)
	for _, s := range g.stuck {
		if b.held[s.uid] != nil && !slices.Contains(pods, s.uid) {
			pods = append(pods, s.uid)
		}
	}
	return b.stuckAmong(pods, now)
}

// stuckAmong returns those of some pods that should be long gone, by name.
func (b *Book) stuckAmong(pods []types.UID, now time.Time) []Stuck {
	var out []Stuck
	for _, pod := range pods {
		m := b.members[pod]
		if m == nil || !b.overstayed(pod, now) {
			continue
		}
		until, _ := b.goesBy(pod, b.held[pod], now)
		out = append(out, Stuck{Pod: keyOf(m.pod), Node: b.held[pod].node, Until: until, uid: pod})
	}
	slices.SortFunc(out, func(x, y Stuck) int { return cmp.Compare(x.Pod.String(), y.Pod.String()) })
	return out
}

// off returns a test for the nodes that are excluded anyway and those on which something is stuck.
func off(stuck []Stuck, excluded func(node string) bool) func(node string) bool {
	nodes := map[string]bool{}
	for _, s := range stuck {
		nodes[s.Node] = true
	}
	return func(node string) bool { return nodes[node] || excluded != nil && excluded(node) }
}

// completed says where a gang starts once what has been cut for it is free: away from what has been cut for others who do not
// run yet, and from nodes on which something is stuck, if it can.
func (b *Book) completed(g *gang, state forecast.State, ask forecast.Ask, freed []resolver.Holding) (found []plan.Assignment, refusal *plan.Refusal) {
	asks := []forecast.Ask{b.aside(g, ask), ask}
	if len(g.stuck) > 0 {
		elsewhere := ask
		elsewhere.Excluded = off(g.stuck, ask.Excluded)
		asks = slices.Insert(asks, 0, b.aside(g, elsewhere), elsewhere)
	}
	for _, ask := range asks {
		if found, refusal = forecast.Complete(state, ask, freed); refusal == nil {
			return found, nil
		}
	}
	return nil, refusal
}

// earliest returns when a gang can start, with nobody cut on nodes where something is stuck if there is another way: what is
// freed there may not go either.
func (b *Book) earliest(state forecast.State, ask *forecast.Ask) (*forecast.Promise, *plan.Refusal) {
	if stuck := b.stuckNow(state.Now); len(stuck) > 0 {
		elsewhere := *ask
		elsewhere.Excluded = off(stuck, ask.Excluded)
		if p, _ := forecast.Earliest(state, elsewhere); p != nil {
			*ask = elsewhere
			return p, nil
		}
	}
	return forecast.Earliest(state, *ask)
}

// stuckNow returns the pods that have been told to go and should be long gone, in any order.
func (b *Book) stuckNow(now time.Time) []Stuck {
	var out []Stuck
	for _, h := range b.leavers {
		if !h.until.IsZero() && !now.Before(h.until.Add(overstay)) {
			out = append(out, Stuck{Node: h.node, Until: h.until})
		}
	}
	return out
}
