package book

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// SetRun adds or replaces a Run. A Run that is edited may fit now, so it is woken. One that is being deleted counts as
// gone, however long its finalizers keep the object: its pods go, and it wants nothing any more.
func (b *Book) SetRun(run *rqv1.Run) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if run.DeletionTimestamp != nil {
		b.deleteRun(run)
		return
	}
	g := b.roster.gangOf(run.UID)
	isNew := g.run == nil
	edited, ran, grew := isNew || g.run.Generation != run.Generation, g.started(), g.growing()
	replans := !isNew && edited && replans(g.run, run)
	g.leased = g.leased || isNew && b.roster.mayHaveLeases(run)
	var forgone []rqv1.RunForgone
	stood := run.Status.SuspendedSeconds
	if !isNew {
		forgone, stood = g.run.Status.Forgone, g.run.Status.SuspendedSeconds
	}
	g.run = run
	b.waiting.order.adopt(g, isNew)
	b.waiting.order.stoodStill(g, stood)
	defer b.roster.settle(g)
	defer b.waiting.file(g)
	b.roster.classes.note(g)
	b.roster.runs[keyOf(run)] = run.UID
	b.turns.adopt(g)
	if ran {
		b.cuts.tellCutters(run.UID)
	}
	if ran != g.started() {
		b.startedOrStopped(g)
	}
	requeued := ran && run.Status.Phase == rqv1.RunPending
	if requeued {
		b.places.unwind(g) // places of ranks that were being replaced; their money is kept with the others'
	}
	b.kept.regardRoom(g)
	if run.Status.Phase != rqv1.RunRunning {
		g.growth = growth{}
	}
	if g.over() {
		b.retire(g)
		return
	}
	if g.suspended() {
		if edited {
			b.shapes.reshape(g)
		}
		b.suspend(g)
		return
	}
	g.ahead = foresight{}
	if edited || g.started() {
		g.futile = futility{}
	}
	if edited {
		g.denial = denial{}
		b.shapes.reshape(g)
	}
	if replans && !g.started() {
		b.places.unwind(g) // what has its Lease already is deleted
		b.turns.losesPlaces(g)
	}
	if ran || g.started() {
		b.rewiden(g, grew, edited)
	}
	if edited && g.started() {
		b.seats.endWithRun(g)
		b.waiting.changes(run.Spec.Resources.GPUType) // it may end sooner
	}
	if b.kept.giveUpForgone(g, forgone) {
		b.shapes.reconsider(g)
	}
	b.turns.restAnew(g)
	if requeued || edited {
		b.breaksUp(g)
	}
	// What a Run was refused while it ran, such as a node that had turned its rank out, does not keep it from starting.
	if edited && g.refusal != nil || (edited || requeued) && g.complete() {
		b.waiting.wake(g)
	}
}

// startedOrStopped follows a gang that has begun to run, or runs no more.
func (b *Book) startedOrStopped(g *gang) {
	if g.started() {
		b.waiting.order.starts(g)
		b.places.dismissAll(g)
	} else {
		b.waiting.order.comesLast(g)
		g.endsApart = false
	}
	g.denial = denial{}
	b.waiting.changes(g.run.Spec.Resources.GPUType) // others may have another date now
}

// retire has a gang whose Run has ended wait for nothing.
func (b *Book) retire(g *gang) {
	b.waiting.remove(g)
	b.waiting.passOn(g)
	if g.demand == (plan.Demand{}) {
		b.shapes.reshape(g) // this process has not seen it before
	}
	g.refusal, g.latest, g.shapedFor, g.judgedOn = nil, nil, footing{}, footing{}
}

// rewiden gives a gang that runs, or has run, the width that its status says.
func (b *Book) rewiden(g *gang, grew int32, edited bool) {
	before := g.demand
	b.places.resize(g, g.granted())
	b.growth.regard(g, grew, edited)
	if g.started() && g.demand != before {
		b.shapes.reconsider(g)
	}
	b.seats.setAllAside(g)
}

// DeleteRun forgets a Run. Its pods and Leases go on counting until they are gone.
func (b *Book) DeleteRun(run *rqv1.Run) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deleteRun(run)
}

// Withdraw has none of the pods of a Run that is about to be deleted get a place until it is gone, or Restore is
// called. It reports false, and does nothing, where one has a place: whoever wants the Run to go has not seen that yet.
// So it is where others make room for the Run, unless it goes all the same.
func (b *Book) Withdraw(run types.UID, anyway bool) bool {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	g := b.roster.gangs[run]
	if g == nil || g.run == nil {
		return true
	}
	if g.started() || !anyway && (g.activates() || len(g.room.held) > 0) {
		return false
	}
	for m := range g.all() {
		if m.placed() && !m.standIn {
			return false
		}
	}
	g.withdrawn = true
	return true
}

// Restore has the pods of a Run get places again that was not deleted after all.
func (b *Book) Restore(run types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.roster.gangs[run]
	if g == nil || g.run == nil || !g.withdrawn {
		return
	}
	g.withdrawn = false
	if lead := g.leader(); lead != nil {
		b.waiting.wake(g)
	}
}

func (b *Book) deleteRun(run *rqv1.Run) {
	if b.roster.runs[keyOf(run)] == run.UID {
		delete(b.roster.runs, keyOf(run))
	}
	g := b.roster.gangs[run.UID]
	if g == nil {
		return
	}
	b.gone.leaves(g)
	g.inquiry.forget()
	b.places.unwind(g)
	b.seats.vacateAll(g)
	b.seats.giveAsideFrom(g, 0)
	b.kept.dropRoom(g)
	b.kept.giveUpRoom(g)
	b.waiting.passOn(g)
	b.waiting.remove(g)
	b.turns.withdraw(g)
	b.turns.letOff(g)
	b.turns.endTakes(g)
	g.run, g.refusal, g.growth, g.withdrawn = nil, nil, growth{}, false
	b.waiting.note(g)
	b.roster.classes.note(g)
	b.waiting.changes(run.Spec.Resources.GPUType) // what its pods hold is on its way out
	b.roster.forgetIfEmpty(run.UID, g)
}

// SetMember adds or updates a pod of a Run. What a pod once was in its Run it stays, whatever becomes of its
// references. One that never runs is gone.
func (b *Book) SetMember(pod *corev1.Pod) {
	if rank.NeverRuns(pod) {
		b.neverRuns(pod)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.roster.members[pod.UID]
	added := m == nil
	if added {
		run, part, ok := rank.Membership(pod)
		if !ok {
			return
		}
		m = b.shapes.join(b.roster.gangOf(run), part, pod)
	}
	b.seats.setBeside(m, pod, added)
	g, part := m.gang, m.part
	if g.over() {
		defer b.roster.settle(g)
	}
	replaces := func(pod *corev1.Pod) string { return pod.Annotations[rqv1.AnnotationReplaces] }
	takes := !added && !part.Spare && replaces(pod) != replaces(m.pod)
	m.pod = pod
	b.sick.note(m)
	at, told := rank.GoesBy(pod)
	if told && !m.leaving {
		s := g.squad(part)
		s.count(m, -1)
		m.leaving = true
		s.count(m, +1)
	}
	switch {
	case told && !rank.ByForce(pod):
		m.endsBy = at
	case told && len(pod.Finalizers) > 0: // its object stays, so that its kubelet reads that it has no time
		m.endsBy = at.Add(rank.LeastGrace)
	}
	if l := b.seats.leases[b.seats.leaseOf(pod)]; l != nil {
		m.had = l
		if m.stage < leased {
			b.seats.advance(m, leased, l.node, payerOf(l.charge))
		}
	}
	switch {
	case rank.Ended(pod):
		b.ends(m)
	case pod.Spec.NodeName != "" && m.stage < bound:
		b.seats.advance(m, bound, pod.Spec.NodeName, m.payer)
	}
	if b.roster.open && m.dies() {
		if l := b.seats.leases[b.seats.leaseOf(pod)]; l != nil {
			b.places.keepOwn(g, l)
		}
	}
	if added && !m.surplus() {
		if b.roster.open {
			b.turns.keepSpare(m)
			b.places.claimSeat(m)
		}
		if m.stage == assigned {
			b.places.came(m)
		} else if g.started() && !part.Spare {
			b.shapes.reconsider(g)
		} else if g.complete() {
			b.waiting.greet(m)
		}
	}
	if b.roster.early[pod.UID] { // the scheduling queue has been told that nothing was known of it
		b.mail.activate(pod)
	}
	if takes && b.roster.open && m.stage == unplaced { // it waited in vain, and a spare's place is to be its own
		b.turns.keepSpare(m)
		b.places.claimSeat(m)
		b.shapes.reconsider(g)
	}
	delete(b.roster.early, pod.UID)
}

// neverRuns has a pod be gone whose object is there. A Run that makes its pods cannot make another of its name until
// then: if it waits for its leader so, it keeps nobody from anything meanwhile.
func (b *Book) neverRuns(pod *corev1.Pod) {
	b.DeleteMember(pod)
	b.mu.Lock()
	defer b.mu.Unlock()
	run, _ := rank.RunOf(pod)
	g := b.roster.gangs[run]
	if g != nil && g.run != nil && !g.run.Spec.Theirs() && !g.over() && !g.opportunistic() && !g.started() {
		b.turns.leaderless(g)
	}
}

// DeleteMember forgets a pod of a Run. If its gang was on its way to the barrier, the gang gives everything back: it is
// planned anew with the pod's replacement.
func (b *Book) DeleteMember(pod *corev1.Pod) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.roster.early, pod.UID)
	m := b.roster.members[pod.UID]
	if m == nil {
		return
	}
	b.sick.drop(pod.UID)
	if h := b.seats.held[pod.UID]; h != nil {
		h.vanished = b.departures.vanished(m, pod)
	}
	g := m.gang
	lacked, given := !g.complete(), g.underWay()
	if m.leavesRoom() {
		b.kept.keepRoom(m)
	}
	b.places.drop(m)
	if !m.extra() && !m.surplus() && (!g.committed || !g.started() && !g.underWay()) {
		b.places.unwind(g)
	}
	b.breaksUp(g)
	if g.comesLate() && g.active.first() != nil {
		b.shapes.reconsider(g) // its new ranks have waited for the old to be gone
	}
	if lacked || given {
		b.turns.losesPlaces(g) // the pod comes again only once the gang has its places
	}
	if g.over() && b.roster.living[g] {
		b.roster.settle(g)
	}
	if run, ok := rank.RunOf(pod); ok {
		b.roster.forgetIfEmpty(run, g)
	}
}
