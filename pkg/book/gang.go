package book

import (
	"cmp"
	"iter"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// gang is a Run with its pods.
type gang struct {
	run *rqv1.Run // nil when only pods or Leases of it have been seen yet
	// full is the shape that the Run asks for, and demand the one at the width that it has at the moment: planned or
	// granted.
	full, demand plan.Demand
	shape        *plan.Refusal // why the Run has no demand
	// shapedFor is what its shape was worked out for, and spends whether that rests on GPU-hours that others may spend.
	shapedFor footing
	spends    bool
	// judged is the shape of which it was found last whether it is stunted, that its pods are of a size which keeps it
	// from ever starting, and judgedOn what that rests on.
	judged         plan.Demand
	judgedOn       footing
	stunted        bool
	outgrown       bool   // it is stunted by pods of which none has a place
	resource       string // what its pods request as GPUs
	active, spares squad
	// standIns is how many of the members are.
	standIns int
	notice   time.Duration // noticePeriod: how long who is to leave a node is told before
	// crowds says that shards are to leave the gang's places once its pods have been made.
	crowds bool
	denial denial
	drain  Drain
	// patience is for how long room is kept for ranks that others are to evict.
	patience patience
	// departs is for how long it is kept for those that leave by themselves.
	departs term
	inquiry inquiry
	futile  futility
	// solvent is the epoch of the last plan that somebody could pay for, although it was refused for want of money.
	solvent int64
	// vacant is room that is kept for the ranks that a running Run has lost, kept who paid for them, by rank, and narrower
	// the width in pods at which the gang could go on without all of them; 0 when there is none.
	vacant   []vacancy
	kept     map[int]budget.Charge
	aside    map[int]bool // those of kept whose money is set aside, since neither a pod nor a room holds it
	narrower int
	requeue  requeue
	// moving are the pods that are told to leave since their group goes on in another domain, and moved are the ranks for
	// whose sake, until they are bound.
	moving map[types.UID]bool
	moved  map[int]bool
	// apart says that ranks are planned without those of their group whose pods have not been made.
	apart     bool
	nodeWait  nodeWait
	withdrawn bool // the Run is about to be deleted
	// returns says that ranks which avoid the nodes where they ended go there again: there are no others.
	returns bool
	lent    *plan.Fork // while a plan for the gang looks at what is kept for it as if that were free
	// latest is the Lease that each part of the Run had last, closed or not.
	latest map[rank.Part]*lease
	// leased says that a pod of the Run has had a Lease, was about to, or may have had.
	leased bool
	// planned says that a plan has been made that the leader's gang has not followed yet.
	planned bool
	// endsApart says that its ranks do not end at once: after one had, the others were waited for in vain.
	endsApart bool
	// committed says that the barrier is open: every member was reserved at once.
	committed bool
	// deadline is when a gang that is not committed gives its GPUs back, and madeBy when one does whose pods have not been
	// made, if shards stay until then.
	deadline, madeBy time.Time
	// refusal is why the last plan failed; nil when none has or the gang is placed.
	refusal *plan.Refusal
	// turnings are what nodes have said that turned a start down since the gang was last woken.
	turnings
	// lapses says until when something is kept for ranks for which others have made no pods.
	lapses map[int]lapse
	// ran are the last members with Leases of ranks whose pods others make, by rank.
	ran map[int]*member
	// keptInVain is since when it was kept that was kept last until then, or for a pod that went at once; zero for never.
	keptInVain time.Time
	// spurned are the nodes that turned ranks of a running gang down, until all of them run.
	spurned map[string]bool
	// took says for which ranks that have not been bound since others of its owner have been told to go (R44).
	took map[int]bool
	// turnedOut tells by node when it last ended a spare or a shard of the gang, or turned it away.
	turnedOut map[string]time.Time
	// bounded says that the gang asks for less than its Run, because there is no more; boundTo is how many GPUs there
	// were.
	bounded bool
	boundTo int
	// cuts are what its activation does to others.
	cuts []rank.Cut
	// woken says that the gang has been activated and not been planned since; tried is the epoch of its last plan.
	woken bool
	tried int64
	plan  int64 // which one of all that was
	// called is when it was first seen to be, or was called last; absent says that it did not come for long.
	called time.Time
	absent bool
	filed  filing
	// stoodBack is since when it has let others be tried first, in this attempt; zero when it has not.
	stoodBack time.Time
	// restsTill is until when the rest lasts that the gang has begun last, after it had held places in vain.
	restsTill time.Time
	// place is where the gang stands among those that wait; own is the place that is its own, and queued what it has the
	// other by.
	place, own spot
	queued     queued
	purse      wanting
	prospect
	check  checking
	growth growth
	// ahead is when it would start if its Run were not suspended.
	ahead foresight
	// shards is how many pods a Run of shards may have, as far as Fill has found out, and kind which of theirs is next.
	shards, kind int
}

// squad returns the pods that have the same role.
func (g *gang) squad(part rank.Part) *squad {
	if part.Spare {
		return &g.spares
	}
	return &g.active
}

// all goes through the members that exist and take part: the active pods, then the spares, in order of index.
func (g *gang) all() iter.Seq[*member] {
	return func(yield func(*member) bool) {
		for _, s := range [...]*squad{&g.active, &g.spares} {
			for _, m := range s.between(0, s.size) {
				if m != nil && !yield(m) {
					return
				}
			}
		}
	}
}

// started reports whether the whole gang was bound.
func (g *gang) started() bool { return g.run != nil && g.run.Status.Phase == rqv1.RunRunning }

// over reports whether the Run has ended.
func (g *gang) over() bool {
	return g.run != nil && g.run.Ended()
}

// opportunistic reports whether the gang's pods are shards, which come and go one by one.
func (g *gang) opportunistic() bool { return g.run != nil && g.run.Spec.Opportunistic }

// complete reports whether the gang can be planned: every pod of it exists, at the width that it has, or its leader
// stands for those that are made once they have places. Once it has started, spares may lack, and ranks that come late.
func (g *gang) complete() bool {
	if g.suspended() {
		return false // none of them is to be placed
	}
	if g.run == nil || g.shape != nil {
		return false
	}
	if g.started() {
		return g.active.within == g.active.size && !g.replaces() || g.comesLate()
	}
	return g.active.whole() && g.spares.whole() || g.canBeLed()
}

// underWay reports whether a pod that the barrier waits for has a node. Places that are kept for pods which have not
// been made are no pod's.
func (g *gang) underWay() bool {
	if g.started() {
		return g.active.assigned > 0
	}
	return g.active.assigned+g.spares.assigned > g.standIns
}

// ready reports whether every member that the barrier waits for has reached it.
func (g *gang) ready() bool {
	if g.awaitsLate() {
		return true
	}
	return g.complete() && g.active.reserved+g.waitingApart() == g.active.size &&
		(g.started() || g.spares.reserved == g.spares.size)
}

// leader returns the member that plans for the gang: the unplaced one of lowest index, active pods first, of these
// belated ones last, surplus ones never. It is nil when all are placed.
func (g *gang) leader() *member {
	return cmp.Or(g.firstRank(), g.active.first(), g.spares.first())
}

// firstRank returns the unplaced rank of lowest index that is planned with others of its gang; nil when there is none.
func (g *gang) firstRank() *member {
	first := g.active.first()
	if first == nil || !first.belated() && !g.nodeWait.left[first.part.Index] {
		return first
	}
	for _, m := range g.active.between(first.part.Index+1, g.active.size) {
		if m != nil && m.stage == unplaced && !m.leaving && !m.belated() && !g.nodeWait.left[m.part.Index] {
			return m
		}
	}
	return nil
}

// accept forgets which nodes turned ranks down once all ranks run, when a member has come to a stage, and reports
// whether it has: spares may go there then.
func (g *gang) accept(m *member, to stage) bool {
	if to == bound && !m.part.Spare {
		delete(g.took, m.part.Index)
		delete(g.moved, m.part.Index)
	}
	if to < bound || len(g.spurned) == 0 {
		return false
	}
	for _, m := range g.active.between(0, g.active.size) {
		if m == nil || m.stage < bound {
			return false
		}
	}
	g.spurned = nil
	return true
}

// spurn remembers that a node turned a rank of a running gang down. A spare, which asks for little, would be taken
// there: the rank would go from spare to spare for ever.
func (g *gang) spurn(m *member, node string) {
	if m.part.Spare || m.belated() || !g.started() {
		return
	}
	if g.spurned == nil {
		g.spurned = map[string]bool{}
	}
	g.spurned[node] = true
}

// stage is how far a pod has come.
type stage int

const (
	unplaced stage = iota
	assigned       // has a node and a payer
	reserved       // waits at the barrier, or has passed it
	writing        // its Lease may or may not be in the ledger by now
	leased         // its Lease is open in the ledger
	bound          // runs on its node
	finished       // succeeded or failed
)

// member is one pod of a gang.
type member struct {
	gang  *gang
	pod   *corev1.Pod
	part  rank.Part
	stage stage
	node  string
	payer payer
	// beside is what the pod asks for beside GPUs.
	beside *topology.Amounts
	// said is what the pod says of nodes, and of which pod that is known.
	said saidOfNodes
	// standIn says that the pod has not been made: its place is kept for it.
	standIn bool
	// unseated says that other rules turned it down in the place of its spare, which stands by.
	unseated bool
	// leaving says that the pod has been told to go.
	leaving bool
	// endsBy is when its containers are to have ended, as its kubelet was told; zero while it was not.
	endsBy time.Time
	// had is the Lease that the pod has, or had; nil while none is known.
	had *lease
	// awaited is the gang that the pod is cut for; nil when it is not.
	awaited *gang
	// came is after how many plans it came to the barrier.
	came int64
	// unseen counts how often the scheduler's cache has lacked the node that the pod was given.
	unseen int
}

// placed reports whether the member has a node where it holds GPUs, or is going to.
func (m *member) placed() bool { return m.stage > unplaced && m.stage < finished }

// holds reports whether a pod has its GPUs by a Lease, and has not ended.
func (m *member) holds() bool { return m.stage >= leased && m.stage < finished }

// extra reports whether the member is a spare of a Run that has started, a shard, or belated. It is placed by itself,
// when there is room: the Run goes on without it.
func (m *member) extra() bool {
	return m.part.Spare && m.gang.started() || m.gang.opportunistic() || m.belated()
}

// group returns the member's group.
func (m *member) group() int { return m.gang.demand.Group(m.part) }

// surplus reports whether the member is beyond the width that its gang has at the moment: it takes part in nothing.
func (m *member) surplus() bool {
	return m.gang.shape == nil && m.part.Index >= m.gang.squad(m.part).size
}

// squad is the pods of a gang that have one role.
type squad struct {
	// members by index; nil where the pod does not exist. present counts those that do, and no member below lowest is
	// unplaced.
	members         []*member
	present, lowest int
	// size is how many members take part, at the width that the gang has at the moment. The other counters leave those
	// with a higher index out.
	size int
	// within counts the members that exist, and leaving those that have been told to go and are not gone: the gang waits
	// for their replacements. Of these done counts those that have succeeded, which a running gang has none for.
	within, leaving, done int
	// assigned counts members with a node, reserved those that have reached the barrier.
	assigned, reserved int
}

// between returns the members with an index from first to before end, as far as there are any.
func (s *squad) between(first, end int) []*member {
	end = min(end, len(s.members))
	return s.members[min(first, end):end]
}

// whole reports whether every member that takes part exists.
func (s *squad) whole() bool { return s.within == s.size && s.leaving == 0 }

// resize changes how many members take part.
func (s *squad) resize(size int) {
	s.size, s.within, s.leaving, s.done, s.assigned, s.reserved = size, 0, 0, 0, 0, 0
	for _, m := range s.members {
		if m != nil {
			s.count(m, +1)
		}
	}
}

// first returns the unplaced member of lowest index that takes part; nil when all are placed.
func (s *squad) first() *member {
	for ; s.lowest < min(s.size, len(s.members)); s.lowest++ {
		if m := s.members[s.lowest]; m != nil && m.stage == unplaced && !m.leaving {
			return m
		}
	}
	return nil
}

func (s *squad) count(m *member, by int) {
	if m.part.Index >= s.size {
		return
	}
	s.within += by
	if m.leaving {
		s.leaving += by
	}
	if m.leaving && m.succeeded() {
		s.done += by
	}
	if m.stage >= assigned {
		s.assigned += by
	}
	if m.stage >= reserved {
		s.reserved += by
	}
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

// canBeLed reports whether a gang that is to start can be planned by its leader, whether or not its other pods exist.
// Pods that are leaving have their names. What others are to make before any of it is bound has to be there: they may
// never.
func (g *gang) canBeLed() bool {
	if g.run != nil && g.run.Spec.Theirs() && !g.run.Spec.TheirsComeLate() && g.active.within < g.active.size {
		return false
	}
	return g.run != nil && g.shape == nil && !g.started() && !g.opportunistic() && !g.over() && !g.suspended() &&
		g.active.leaving == 0 && g.spares.leaving == 0 && g.active.first() != nil
}

// memberAt returns the member of an index; nil where there is none.
func (s *squad) memberAt(index int) *member {
	if index < len(s.members) {
		return s.members[index]
	}
	return nil
}
