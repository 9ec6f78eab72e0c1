package book

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// filler gives idle GPUs to opportunistic Runs (R15), and asks who pays for Runs that have no pods yet.
type filler struct {
	accounts *budget.Accounts
	fleet    *topology.Fleet
	mail     *mailbox
	nodes    *nodeTable
	roster   *roster
	waiting  *waitlist
	agenda   *agenda
	seats    *seating
	places   *placement
	turns    *activations
	drainer  *drainer

	forgiven time.Time // when the nodes that other scheduling rules turned down were last tried again
}

// fillGang gives the shards of one Run what there is on some nodes.
func (y *filler) fillGang(g *gang, idle []string, now time.Time) {
	var shards []int
	for _, m := range g.active.between(0, g.active.size) {
		if m != nil && m.stage == unplaced && !m.leaving {
			shards = append(shards, m.part.Index)
		}
	}
	var refusal *plan.Refusal
	for _, alike := range g.inTurn(g.alike(shards)) {
		var left *plan.Refusal
		for given := true; given && len(alike) > 0; { // those that are left are refused as they are when they ask again
			var n int
			n, left = y.fillShards(g, alike, idle, now)
			given, alike = n > 0, alike[n:]
		}
		refusal = cmp.Or(refusal, left)
	}
	if (refusal == nil) != (g.refusal == nil) || refusal != nil && !refusal.SameAs(g.refusal) {
		g.refusal = refusal
		y.mail.reconcile(keyOf(g.run), lane.Date)
	}
}

// inTurn returns shards of as many kinds as are looked at each time, others the next.
func (g *gang) inTurn(kinds [][]int) [][]int {
	if len(kinds) <= mostKinds {
		return kinds
	}
	first := g.kind % len(kinds)
	g.kind = first + mostKinds
	return slices.Concat(kinds[first:], kinds[:first])[:mostKinds]
}

// fillShards gives some shards of a Run, which are alike, what there is on some nodes. It returns how many it has,
// which are the first of them, and why the others get nothing.
func (y *filler) fillShards(g *gang, shards []int, idle []string, now time.Time) (int, *plan.Refusal) {
	pod, asks := g.active.members[shards[0]].pod, g.asks(rank.Part{Index: shards[0]}, nil)
	assignments, refusal := plan.Fill(y.accounts, g.demand, y.agenda.debts.claim(g, nil, now), shards,
		y.rooms(g, pod, asks, idle, now), now)
	y.places.assume(g, assignments, now)
	for _, a := range assignments {
		y.mail.activate(g.active.members[a.Index].pod)
	}
	if refusal != nil && len(assignments) == 0 {
		y.nodes.blame(g, pod, refusal, now, func(rejected func(string) bool) bool {
			return len(y.roomsBut(g, rejected, nil, idle)) > 0
		})
	}
	return len(assignments), refusal
}

// allowShards says how many pods each Run of shards may have: a Run may ask for a million. Beyond those that have their
// places, and the one that waits, they are as many as there is room and money for, of older Runs first. Wanting are the
// Runs by age, and idle the nodes that have room.
func (y *filler) allowShards(wanting []*gang, idle map[string][]string, now time.Time) {
	left := map[string]int{}
	for flavor, nodes := range idle {
		for _, node := range nodes {
			left[flavor] += y.seats.roomFor(node) - y.seats.shardGPUs(node)
		}
	}
	for _, g := range wanting {
		flavor, gpus := g.full.Flavor, g.full.GPUsPerPod
		fits := min(left[flavor]/gpus, g.wants())
		if fits > 0 {
			fits = min(fits, plan.Shards(y.accounts, g.demand, y.agenda.debts.claim(g, nil, now), now))
		}
		left[flavor] -= fits * gpus
		if more := g.active.assigned + max(waitingShards, fits); more != g.shards {
			g.shards = more
			if more > g.active.within {
				y.mail.reconcile(keyOf(g.run), lane.Begin)
			}
		}
	}
}

// idleNodes lists the nodes that have GPUs which shards may use, by flavor: of a fleet that is full, none need be
// looked at for each of the Runs that wait.
func (y *filler) idleNodes() map[string][]string {
	out := map[string][]string{}
	for name, node := range y.nodes.byName {
		if y.seats.roomFor(name) > y.seats.shardGPUs(name) && y.nodes.serves(node) {
			flavor := y.nodes.flavorOf(node)
			out[flavor] = append(out[flavor], name)
		}
	}
	return out
}

// rooms lists what shards that are like one could use now of some nodes.
func (y *filler) rooms(g *gang, shard *corev1.Pod, asks *topology.Amounts, idle []string,
	now time.Time) []plan.Room {
	if len(idle) == 0 {
		return nil
	}
	rejected := y.nodes.rejecting(g, shard, g.fled())
	return y.roomsBut(g, y.nodes.shutOut(g, g.without(rejected, now), now), asks, idle)
}

// roomsBut lists them without the nodes that are rejected, for shards that ask for something beside GPUs.
func (y *filler) roomsBut(g *gang, rejected func(node string) bool, beside *topology.Amounts,
	idle []string) []plan.Room {
	var out []plan.Room
	for _, name := range idle {
		left := y.seats.roomFor(name) - y.seats.shardGPUs(name)
		if left < g.full.GPUsPerPod || rejected != nil && rejected(name) {
			continue
		}
		left = min(left, y.seats.shardRoom(name, beside, left/g.full.GPUsPerPod)*g.full.GPUsPerPod)
		under := min(left, max(0, y.seats.standby[name]-y.seats.shardGPUs(name)))
		out = append(out, plan.Room{Node: name, Labels: y.nodes.byName[name].Labels, Idle: left - under, UnderSpares: under,
			Intended: len(y.agenda.intended[name]) > 0})
	}
	return out
}

// whyUnpaid says why nobody can pay for a gang that has no pod, at its narrowest: a shard, of an opportunistic Run. It
// is nil when somebody can.
func (y *filler) whyUnpaid(g *gang, now time.Time) *plan.Refusal {
	claim := y.agenda.debts.claim(g, nil, now)
	if g.opportunistic() {
		if _, refusal := plan.Fill(y.accounts, g.full, claim, []int{0}, nil, now); refusal.AboutMoney() {
			return refusal
		}
		return nil
	}
	least := g.full.Least()
	return plan.Prepare(y.accounts, least, claim, y.nodes.byKind(g, least.EveryPod(), false),
		y.nodes.rejectedAll(g, g.model()), now).Unpaid(y.fleet)
}

func (y *filler) goesUnpaid(g *gang, now time.Time) bool {
	switch {
	case !g.unmade():
		if g.unpaid && g.opportunistic() && g.shape == nil {
			y.waiting.remove(g) // Fill looks after it
		}
		g.unpaid, g.asked = false, false
		return false
	case g.unpaid && !g.asked:
		return true
	case !g.unpaid && (g.denied() || y.roster.yields(g)):
		return false // why it was refused stands until it has its leader again
	}
	before := g.unpaid
	if !before && g.active.present > 0 && g.solvent == g.tried {
		return false
	}
	g.asked = false
	refusal := y.whyUnpaid(g, now)
	if refusal == nil && !before {
		if g.active.present > 0 {
			g.solvent = g.tried // it lacks more than somebody who pays
		}
		return false
	}
	g.unpaid = refusal != nil
	if !g.unpaid {
		y.waiting.pledge(g, now)
		y.waiting.remove(g)
		g.refusal = nil
		if g.promise != nil {
			y.agenda.pledge(g)
		}
		if g.complete() {
			y.waiting.wake(g)
		}
		return false
	}
	y.waiting.stirred = y.waiting.stirred || before // others were not woken for its sake
	g.refusal, g.tried = refusal, y.waiting.epoch
	y.waiting.add(g)
	switch {
	case g.opportunistic(): // which has no date
	case y.waiting.crowded(g):
		y.turns.queueUp(g, now)
	default:
		y.turns.makePromise(g, g.model(), now)
	}
	return true
}

// askWhoPays finds out whether nobody can pay for a Run that waits and has no pod: then it gets none (R32). Its refusal
// and its date are worked out without, and it is asked about again when somebody may be able to pay, not before.
func (y *filler) askWhoPays(g *gang, now time.Time) {
	if !y.goesUnpaid(g, now) && g.opportunistic() && g.shape == nil && g.shards == 0 && !g.over() {
		y.allowShards(y.roster.wanting(), y.idleNodes(), now) // it is new
	}
}

// forgiveness is how long a shard keeps off a node that another scheduling rule turned down.
const forgiveness = 5 * time.Second

// nextForgiveness tells when the nodes that turned shards down are tried again.
func (y *filler) nextForgiveness(next *earliest) {
	for g := range y.roster.classes.sweeps {
		if len(g.excluded) > 0 && !g.over() {
			next.by(y.forgiven.Add(forgiveness))
		}
	}
}

// sweep gives shards that wait the GPUs that are idle, older Runs first, and has those leave that are in somebody's
// way. It leaves GPUs alone that Runs which wait are about to be tried on.
func (y *filler) sweep(now time.Time) {
	for pod := range y.places.reclaimed {
		if y.seats.held[pod] == nil && y.roster.members[pod] == nil {
			delete(y.places.reclaimed, pod)
		}
	}
	y.drainer.clearOut(y.places, now)
	for _, node := range slices.Sorted(maps.Keys(y.seats.shards)) {
		y.places.reclaim(node, rqv1.ClosedReclaimed, nil) // its GPUs have become fewer, or this process has just begun
	}
	forgive := now.Sub(y.forgiven) >= forgiveness
	if forgive {
		y.forgiven = now
	}
	wanting := y.roster.wanting()
	// all that wait, and all nodes, are looked at for them
	contested, idle := sync.OnceValue(y.roster.contested), sync.OnceValue(y.idleNodes)
	for _, g := range wanting {
		if forgive {
			clear(g.excluded)
		}
		if (g.active.first() != nil || g.refusal != nil) && !contested()[g.full.Flavor] {
			y.fillGang(g, idle()[g.full.Flavor], now)
		}
	}
	wanting = slices.DeleteFunc(wanting, func(g *gang) bool { return g.wants() == 0 || contested()[g.full.Flavor] })
	if len(wanting) > 0 {
		y.allowShards(wanting, idle(), now)
	}
}
