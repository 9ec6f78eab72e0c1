package book

import (
	"iter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// gang is a Run with its pods.
type gang struct {
	run *rqv1.Run // nil when only pods or Leases of it have been seen yet
	// full is the shape that the Run asks for, and demand the one at the width that it has at the moment: planned or granted.
	full, demand   plan.Demand
	shape          *plan.Refusal // why the Run has no demand
	active, spares squad
	// vacant is room that is kept for the ranks that a running Run has lost, kept who paid for them, by rank, and narrower
	// the width in pods at which the gang could go on without all of them; 0 when there is none.
	vacant   []vacancy
	kept     map[int]budget.Charge
	narrower int
	requeue  requeue
	// latest is the Lease that each part of the Run had last, closed or not.
	latest map[rank.Part]*lease
	// planned says that a plan has been made that the leader's gang has not followed yet.
	planned bool
	// committed says that the barrier is open: every member was reserved at once.
	committed bool
	// deadline is when a gang that is not committed gives its GPUs back.
	deadline time.Time
	// refusal is why the last plan failed; nil when none has or the gang is placed.
	refusal *plan.Refusal
	// excluded are the nodes that other scheduling rules turned down since the gang was last woken, and why.
	excluded map[string]string
	// spurned are the nodes that turned ranks of a running gang down, until all of them run.
	spurned map[string]bool
	// bounded says that the gang asks for less than its Run, because there is no more; boundTo is how many GPUs there were.
	bounded bool
	boundTo int
	// woken says that the gang has been activated and not been planned since; tried is the epoch of its last plan.
	woken bool
	tried int64
	prospect
	growth growth
	// shards is how many pods a Run of shards may have, as far as Fill has found out.
	shards int
}

// payer is who pays for a pod, and what it is to the Run's owner.
type payer struct {
	key      budget.Key
	relation rqv1.Relation
}

// SetRun adds or replaces a Run. A Run that is edited may fit now, so it is woken. One that is being deleted counts as gone,
// however long its finalizers keep the object: its pods go, and it wants nothing any more.
func (b *Book) SetRun(run *rqv1.Run) {
	b.mu.Lock()
	defer b.unlock()
	if run.DeletionTimestamp != nil {
		b.deleteRun(run)
		return
	}
	g := b.gangOf(run.UID)
	edited, ran, grew := g.run == nil || g.run.Generation != run.Generation, g.started(), g.growing()
	replans := g.run != nil && edited && replans(g.run, run)
	g.run = run
	b.classes.note(g)
	b.runs[keyOf(run)] = run.UID
	b.adopt(g)
	if ran {
		b.tellCutters(run.UID)
	}
	if ran != g.started() {
		b.waiting.epoch++ // others may have another date now
	}
	b.regardRoom(g)
	if run.Status.Phase != rqv1.RunRunning {
		g.growth = growth{}
		if g.over() {
			b.waiting.remove(g)
			b.passOn(g)
			g.refusal, g.latest = nil, nil
			return
		}
	}
	if edited {
		b.shape(g)
	}
	if replans && !g.started() {
		b.unwind(g) // what has its Lease already is deleted
	}
	if before := g.demand; ran || g.started() {
		b.resize(g, g.granted())
		b.regard(g, grew, edited)
		if g.started() && g.demand != before {
			b.reconsider(g)
		}
	}
	if edited && (g.refusal != nil || g.complete()) {
		b.wake(g)
	}
}

// DeleteRun forgets a Run. Its pods and Leases go on counting until they are gone.
func (b *Book) DeleteRun(run *rqv1.Run) {
	b.mu.Lock()
	defer b.unlock()
	b.deleteRun(run)
}

func (b *Book) deleteRun(run *rqv1.Run) {
	if b.runs[keyOf(run)] == run.UID {
		delete(b.runs, keyOf(run))
	}
	g := b.gangs[run.UID]
	if g == nil {
		return
	}
	b.unwind(g)
	b.vacateAll(g)
	b.dropRoom(g)
	b.waiting.remove(g)
	b.withdraw(g)
	g.run, g.refusal, g.growth = nil, nil, growth{}
	b.classes.note(g)
	b.waiting.epoch++ // what its pods hold is on its way out
	b.forgetIfEmpty(run.UID, g)
}

func keyOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

func (b *Book) gangOf(run types.UID) *gang {
	g := b.gangs[run]
	if g == nil {
		g = &gang{excluded: map[string]string{}}
		b.gangs[run] = g
	}
	return g
}

func (b *Book) forgetIfEmpty(run types.UID, g *gang) {
	if g.run == nil && g.active.present == 0 && g.spares.present == 0 {
		delete(b.gangs, run)
	}
}

// Refusal returns why a Run does not start; nil when it has started, or has not been tried.
func (b *Book) Refusal(run types.UID) *plan.Refusal {
	b.mu.Lock()
	defer b.mu.Unlock()
	if g := b.gangs[run]; g != nil {
		return g.refusal
	}
	return nil
}

// SetMember adds or updates a pod of a Run. What a pod once was in its Run it stays, whatever becomes of its references.
func (b *Book) SetMember(pod *corev1.Pod) {
	b.mu.Lock()
	defer b.unlock()
	m := b.members[pod.UID]
	added := m == nil
	if added {
		run, part, ok := rank.Membership(pod)
		if !ok {
			return
		}
		m = b.join(b.gangOf(run), part, pod)
	}
	g, part := m.gang, m.part
	m.pod = pod
	if pod.DeletionTimestamp != nil && !m.leaving {
		s := g.squad(part)
		s.count(m, -1)
		m.leaving = true
		s.count(m, +1)
	}
	if l := b.leases[leaseName(pod)]; l != nil && m.stage < leased {
		b.advance(m, leased, l.node, payerOf(l.charge))
	}
	switch {
	case terminal(pod):
		b.advance(m, finished, pod.Spec.NodeName, m.payer)
	case pod.Spec.NodeName != "" && m.stage < bound:
		b.advance(m, bound, pod.Spec.NodeName, m.payer)
	}
	if added && !m.surplus() {
		if b.open {
			b.claimSeat(m)
		}
		if g.started() && !part.Spare {
			b.reconsider(g)
		} else if g.complete() {
			b.wake(g)
		}
	}
}

// join gives a pod its part in the gang, in place of the pod that had it before.
func (b *Book) join(g *gang, part rank.Part, pod *corev1.Pod) *member {
	s := g.squad(part)
	for len(s.members) <= part.Index {
		s.members = append(s.members, nil)
	}
	if old := s.members[part.Index]; old != nil {
		b.drop(old)
	}
	m := &member{gang: g, part: part, pod: pod}
	s.members[part.Index] = m
	s.count(m, +1)
	s.lowest = min(s.lowest, part.Index)
	b.members[pod.UID] = m
	if s.present++; s.present == 1 && !part.Spare {
		b.shape(g)
	}
	return m
}

// DeleteMember forgets a pod of a Run. If its gang was on its way to the barrier, the gang gives everything back: it is
// planned anew with the pod's replacement.
func (b *Book) DeleteMember(pod *corev1.Pod) {
	b.mu.Lock()
	defer b.unlock()
	m := b.members[pod.UID]
	if m == nil {
		return
	}
	g := m.gang
	if m.leavesRoom() {
		b.keepRoom(m)
	}
	b.drop(m)
	if !m.extra() && !m.surplus() && (!g.committed || !g.started() && !g.underWay()) {
		b.unwind(g)
	}
	if run, ok := rank.RunOf(pod); ok {
		b.forgetIfEmpty(run, g)
	}
}

// drop takes a member out of its gang.
func (b *Book) drop(m *member) {
	b.release(m)
	delete(b.members, m.pod.UID)
	s := m.gang.squad(m.part)
	s.count(m, -1)
	s.members[m.part.Index] = nil
	s.present--
	b.passOn(m.gang)
	b.leaveSeat(m)
}

// advance moves a member to a later stage on a node, and keeps the counters in step.
func (b *Book) advance(m *member, to stage, node string, payer payer) {
	s := m.gang.squad(m.part)
	s.count(m, -1)
	m.stage, m.payer, m.node, m.unseen = to, payer, node, 0
	s.count(m, +1)
	m.gang.accept(to)
	if to == unplaced {
		s.lowest = min(s.lowest, m.part.Index)
	}
}

// release takes a member's assignment back, if neither the ledger nor the node holds it. While its Lease is being written
// the GPUs and the charge stay taken: only the outcome of the write says whether they are.
func (b *Book) release(m *member) {
	name := leaseName(m.pod)
	if m.stage > unplaced && m.stage != writing && b.leases[name] == nil {
		b.accounts.Void(name.String())
		b.wakeBudget(m.payer.key.Budget)
		b.hold(m.pod.UID, "", 0, func(h *holding) { h.planned = false })
	}
	b.advance(m, unplaced, "", payer{})
	if b.open {
		b.claimSeat(m)
	}
}

// reconsider forgets why a running gang was refused: its ranks or its width have changed, and it is planned anew.
func (b *Book) reconsider(g *gang) {
	if g.shape != nil {
		return
	}
	b.waiting.remove(g)
	g.refusal, g.narrower = nil, 0
	if g.active.whole() && g.active.first() == nil {
		b.vacate(g, func(v *vacancy) bool { return v.index == anyRank }) // no rank is left that wants it
	}
	if g.complete() {
		b.wake(g)
	}
}

// unwind takes back the assignments of every member that has no Lease yet, but for the spares of a Run that has started.
// Those that wait at the barrier are rejected. A Run that has not started asks for its total again.
func (b *Book) unwind(g *gang) {
	g.committed = false
	b.passOn(g)
	b.leaveOff(g)
	for m := range g.all() {
		if m.extra() || (m.stage != assigned && m.stage != reserved) {
			continue
		}
		if m.stage == reserved {
			b.reject(m.pod.UID)
		}
		b.release(m)
	}
	b.retake(g)
	b.resize(g, g.granted())
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
