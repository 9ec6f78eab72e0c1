package book

import (
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// fill is what shards of opportunistic Runs hold (R15). Everybody else is planned as if they were not there, and they go when
// somebody is given the GPUs that they run on.
type fill struct {
	// shards are the GPUs of shards by node and pod, and spares the GPUs by node of spares that stand by: nothing else runs on those.
	shards map[string]map[types.UID]int
	spares map[string]int
	// reclaimed are the shards that have been told to go, until their Leases are closed, and why.
	reclaimed map[types.UID]rqv1.ClosureReason
	// forgiven is when the nodes that other scheduling rules turned down were last tried again.
	forgiven time.Time
}

func newFill() fill {
	return fill{shards: map[string]map[types.UID]int{}, spares: map[string]int{}, reclaimed: map[types.UID]rqv1.ClosureReason{}}
}

// forgiveness is how long a shard keeps off a node that another scheduling rule turned down.
const forgiveness = 5 * time.Second

// opportunistic reports whether the gang's pods are shards, which come and go one by one.
func (g *gang) opportunistic() bool { return g.run != nil && g.run.Spec.Opportunistic }

// waitsForIdle is why a shard is held back.
const waitsForIdle = "waiting for idle GPUs"

// idles reports whether nothing runs on what a spare holds. That ends when a rank is to take its place.
func (h *holding) idles() bool { return h.spare && !h.vacant }

// occupy counts GPUs that a holding takes from its node, or gives back where gpus is negative.
func (b *Book) occupy(h *holding, pod types.UID, gpus int) {
	node := h.node
	if gpus == 0 {
		return
	}
	if h.shard {
		if b.fill.shards[node] == nil {
			b.fill.shards[node] = map[types.UID]int{}
		}
		if b.fill.shards[node][pod] += gpus; b.fill.shards[node][pod] == 0 {
			delete(b.fill.shards[node], pod)
		}
		if len(b.fill.shards[node]) == 0 {
			delete(b.fill.shards, node)
		}
		return
	}
	if h.idles() {
		if b.fill.spares[node] += gpus; b.fill.spares[node] == 0 {
			delete(b.fill.spares, node)
		}
	}
	b.fleet.Take(node, gpus)
}

// shardGPUs returns how many GPUs of a node shards hold.
func (b *Book) shardGPUs(node string) int {
	sum := 0
	for _, gpus := range b.fill.shards[node] {
		sum += gpus
	}
	return sum
}

// roomFor returns how many GPUs of a node shards may hold: those that are nobody's and those under spares that stand by.
func (b *Book) roomFor(node string) int { return b.freeOn(node) + b.fill.spares[node] }

// reclaim has shards leave a node until others have what they have been given there. A gang that is given waits for all that
// leave; it may be nil. The youngest shards go, and one that has no Lease yet leaves at once.
func (b *Book) reclaim(node string, reason rqv1.ClosureReason, g *gang) {
	over := b.shardGPUs(node) - b.roomFor(node)
	if over <= 0 {
		return
	}
	pods := slices.Sorted(maps.Keys(b.fill.shards[node]))
	shards := make([]plan.Shard, len(pods))
	for i, pod := range pods {
		shards[i] = plan.Shard{Key: string(pod), GPUs: b.fill.shards[node][pod], Leaving: b.givesWay(pod)}
		if m := b.members[pod]; m != nil {
			shards[i].Key, shards[i].Since = keyOf(m.pod).String(), b.heldSince(m)
		}
	}
	for _, i := range plan.Reclaim(shards, over) {
		b.evict(b.members[pods[i]], reason)
	}
	if b.shardGPUs(node) <= b.roomFor(node) || g == nil {
		return
	}
	for _, pod := range pods {
		if h := b.held[pod]; h != nil && b.givesWay(pod) {
			h.await(g)
		}
	}
}

// givesWay reports whether a shard is on its way out: it has been told to go, for others or for good, or it is gone and its Lease
// is open.
func (b *Book) givesWay(pod types.UID) bool {
	m := b.members[pod]
	return m == nil || m.leaving || b.fill.reclaimed[pod] != ""
}

// makeRoom has shards leave that are in the way of a gang which has been given places. Spares run nothing.
func (b *Book) makeRoom(g *gang, assignments []plan.Assignment) {
	if g.opportunistic() {
		return
	}
	for _, a := range assignments {
		if !a.Spare && len(b.fill.shards[a.Node]) > 0 {
			reason := rqv1.ClosedReclaimed
			if r, ok := rank.ReplacementOf(g.active.members[a.Index].pod); ok && r.Node == a.Node {
				reason = rqv1.ClosedReclaimedBySpare
			}
			b.reclaim(a.Node, reason, g)
		}
	}
}

// evict has a shard leave its node.
func (b *Book) evict(m *member, reason rqv1.ClosureReason) {
	if m.stage < writing {
		b.release(m)
		return
	}
	b.fill.reclaimed[m.pod.UID] = reason
	if m.gang.run != nil {
		b.reconcile(keyOf(m.gang.run))
	}
}

// Fill gives shards that wait the GPUs that are idle, older Runs first, and has those leave that are in somebody's way. It
// leaves GPUs alone that Runs which wait are about to be tried on.
func (b *Book) Fill(now time.Time) {
	b.mu.Lock()
	defer b.unlock()
	if !b.open {
		return
	}
	for pod := range b.fill.reclaimed {
		if b.held[pod] == nil && b.members[pod] == nil {
			delete(b.fill.reclaimed, pod)
		}
	}
	for _, node := range slices.Sorted(maps.Keys(b.fill.shards)) {
		b.reclaim(node, rqv1.ClosedReclaimed, nil) // its GPUs have become fewer, or this process has just begun
	}
	forgive := now.Sub(b.fill.forgiven) >= forgiveness
	if forgive {
		b.fill.forgiven = now
	}
	wanting := b.wanting()
	contested, idle := sync.OnceValue(b.contested), sync.OnceValue(b.idleNodes) // all that wait, and all nodes, are looked at for them
	for _, g := range wanting {
		if forgive {
			clear(g.excluded)
		}
		if (g.active.first() != nil || g.refusal != nil) && !contested()[g.full.Flavor] {
			b.fillGang(g, idle()[g.full.Flavor], now)
		}
	}
	wanting = slices.DeleteFunc(wanting, func(g *gang) bool { return g.wants() == 0 || contested()[g.full.Flavor] })
	if len(wanting) > 0 {
		b.allowShards(wanting, idle(), now)
	}
}

// wanting returns the gangs of shards that take what is idle, older Runs first.
func (b *Book) wanting() []*gang {
	var out []*gang
	for g := range b.classes.sweeps {
		if g.shape == nil && !g.unpaid && !g.over() && g.run.DeletionTimestamp == nil {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, byAge)
	return out
}

// fillGang gives the shards of one Run what there is on some nodes.
func (b *Book) fillGang(g *gang, idle []string, now time.Time) {
	var shards []int
	for _, m := range g.active.between(0, g.active.size) {
		if m != nil && m.stage == unplaced && !m.leaving {
			shards = append(shards, m.part.Index)
		}
	}
	var refusal *plan.Refusal
	if len(shards) > 0 {
		var assignments []plan.Assignment
		assignments, refusal = plan.Fill(b.accounts, g.demand, b.claim(g, nil), shards, b.rooms(g, g.active.members[shards[0]].pod, idle), now)
		b.assume(g, assignments, now)
		for _, a := range assignments {
			b.activate(g.active.members[a.Index].pod)
		}
		if refusal != nil {
			b.blame(g, g.active.members[shards[0]].pod, refusal, func(rejected func(string) bool) bool {
				return len(b.roomsBut(g, rejected, idle)) > 0
			})
		}
	}
	if (refusal == nil) != (g.refusal == nil) || refusal != nil && refusal.Message != g.refusal.Message {
		g.refusal = refusal
		b.reconcile(keyOf(g.run))
	}
}

// idleNodes lists the nodes that have GPUs which shards may use, by flavor: of a fleet that is full, none need be looked at for
// each of the Runs that wait.
func (b *Book) idleNodes() map[string][]string {
	out := map[string][]string{}
	for name, node := range b.nodes {
		if b.roomFor(name) > b.shardGPUs(name) && b.serves(node) {
			flavor := b.flavorOf(node)
			out[flavor] = append(out[flavor], name)
		}
	}
	return out
}

// rooms lists what shards of a gang could use now of some nodes. They are alike but for their ranks.
func (b *Book) rooms(g *gang, shard *corev1.Pod, idle []string) []plan.Room {
	if len(idle) == 0 {
		return nil
	}
	return b.roomsBut(g, b.rejected(g, shard), idle)
}

// roomsBut lists them without the nodes that are rejected.
func (b *Book) roomsBut(g *gang, rejected func(node string) bool, idle []string) []plan.Room {
	var out []plan.Room
	for _, name := range idle {
		left := b.roomFor(name) - b.shardGPUs(name)
		if left < g.full.GPUsPerPod || rejected != nil && rejected(name) {
			continue
		}
		under := min(left, max(0, b.fill.spares[name]-b.shardGPUs(name)))
		out = append(out, plan.Room{Node: name, Labels: b.nodes[name].Labels, Idle: left - under, UnderSpares: under, Intended: len(b.intended[name]) > 0})
	}
	return out
}

// turnedShard takes a shard from a node that another scheduling rule turned down. It is placed elsewhere, or there again after
// a while.
func (b *Book) turnedShard(m *member, node, why string) {
	m.gang.excluded[node] = why
	if m.stage == assigned {
		b.release(m)
	}
}

// besideShards returns other places for a gang that leave shards where they are, or those found where there are none: it had
// better not have them leave, but neither wait for anybody else's room nor be narrower for their sake.
func (b *Book) besideShards(flavor string, found []plan.Assignment, again func() ([]plan.Assignment, *plan.Refusal)) []plan.Assignment {
	if !slices.ContainsFunc(found, func(a plan.Assignment) bool { return len(b.fill.shards[a.Node]) > 0 }) {
		return found
	}
	taken := map[string]int{}
	for node := range b.fill.shards {
		if gpus := b.shardGPUs(node) - b.fill.spares[node]; gpus > 0 && b.nodeFlavor(node) == flavor {
			taken[node] = gpus
			b.fleet.Take(node, gpus)
		}
	}
	other, refusal := again()
	for node, gpus := range taken {
		b.fleet.Give(node, gpus)
	}
	if refusal != nil {
		return found
	}
	return other
}
