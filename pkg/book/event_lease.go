package book

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// NewLease returns the Lease that a reserved pod is to hold from now on. Until the ledger is known to hold it, or
// NotWritten tells that it does not, the pod keeps its node.
func (b *Book) NewLease(pod types.UID, now time.Time) (*rqv1.Lease, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.agenda.stamped(now)
	m := b.roster.members[pod]
	if m == nil || m.stage < reserved || m.gang.run == nil {
		return nil, fmt.Errorf("the pod no longer belongs to a gang that is starting")
	}
	if m.doomed() { // the Lease would be younger than the decision, which is about what was held then
		return nil, fmt.Errorf("the pod is being cut")
	}
	if why := b.nodes.contradicts(m); why != "" {
		return nil, errors.New(why)
	}
	if m.stage == reserved {
		b.seats.advance(m, writing, m.node, m.payer)
		b.seats.hold(pod, "", 0, func(h *holding) { h.writing = m.gang.run.UID })
	}
	g, name := m.gang, leaseName(m.pod)
	g.leased = true
	cohort, _ := strconv.ParseInt(m.pod.Labels[rqv1.LabelCohort], 10, 32)
	labels := map[string]string{rqv1.LabelPodUID: string(pod)}
	for _, key := range []string{rqv1.LabelRun, rqv1.LabelGroupIndex, rqv1.LabelRole, rqv1.LabelCohort, rqv1.LabelIndex} {
		labels[key] = m.pod.Labels[key]
	}
	if epoch, ok := m.pod.Labels[rqv1.LabelEpoch]; ok {
		labels[rqv1.LabelEpoch] = epoch
	}
	var annotations map[string]string
	if domain := b.nodes.domainAt(g, m.part, m.node); domain != "" {
		annotations = map[string]string{rqv1.AnnotationDomain: domain}
	}
	charge := b.seats.chargeOf(m, now)
	return &rqv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, Labels: labels, Annotations: annotations},
		Spec: rqv1.LeaseSpec{
			Owner:      g.run.Spec.Owner,
			RunRef:     rqv1.LeaseRunRef{Name: g.run.Name, Namespace: g.run.Namespace, UID: g.run.UID},
			GroupIndex: int32(m.group()),
			Cohort:     int32(cohort),
			Slice: rqv1.LeaseSlice{
				Role:  charge.Role,
				Nodes: []rqv1.NodeGPUs{{Name: m.node, GPUs: int32(charge.GPUs)}},
			},
			Payer: rqv1.LeasePayer{Budget: charge.Payer.Budget, Owner: b.seats.payerOwner(m), Relation: charge.Relation,
				Rate: charge.Rate.String()},
			PaidByEnvelope: charge.Payer.Envelope,
			Reason:         reasonFor(m),
			Start:          metav1.NewMicroTime(now),
			Until:          instant(charge.Until),
			Admitted:       instant(charge.Admitted),
			Flavor:         charge.Flavor,
			Attempt:        g.run.Status.Attempt,
		},
	}, nil
}

// NotWritten tells that the ledger does not hold a Lease that was being written for a pod, which may be gone meanwhile.
func (b *Book) NotWritten(pod types.UID, name types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seats.leases[name] != nil {
		return
	}
	if m := b.roster.members[pod]; m != nil {
		if m.stage == writing {
			b.seats.advance(m, reserved, m.node, m.payer)
			b.seats.hold(pod, "", 0, (*holding).answer)
		}
		return
	}
	if charge, ok := b.accounts.Void(name.String()); ok {
		if g := b.roster.gangs[types.UID(charge.Run)]; g != nil {
			b.seats.keepMoney(g, charge)
			b.seats.setAllAside(g)
		}
		b.waiting.wakeBudget(charge.Payer.Budget)
	}
	b.seats.hold(pod, "", 0, (*holding).answer)
}

// Unsettled reports whether it is open if a pod's Lease has been written, and whether the pod is gone, so that no
// attempt to bind it is going to find out.
func (b *Book) Unsettled(pod types.UID) (open, gone bool) {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	h := b.seats.held[pod]
	return h != nil && h.writing != "", b.roster.members[pod] == nil
}

// SetLease records a Lease. While it is open its charge and its GPUs stay taken, and its pod goes where it says,
// whatever was planned. When it is closed, what it spent remains. It returns the Budgets that are to be settled at
// once, since the namespace of a closed Lease is being deleted, and its object with it.
func (b *Book) SetLease(l *rqv1.Lease) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	name, charge := keyOf(l), ChargeIn(l)
	if l.Status.Closed {
		if l.Status.ClosureReason == rqv1.ClosedRepaid {
			b.ledger.closesRepaid(name, charge, l.Status.Ended.Time)
			if b.accounts.Leaves(name.String()) {
				return []string{charge.Payer.Budget}
			}
			return nil
		}
		leaves := b.accounts.Leaves(name.String())
		if leaves || !b.handbacks.defers(l, name) {
			b.takesIn(l)
		}
		if leaves {
			return []string{charge.Payer.Budget}
		}
		return nil
	}
	if b.seats.leases[name] != nil {
		b.seats.outlives(l)
		return nil
	}
	if b.accounts.IsPast(name.String(), charge.Payer) {
		return nil
	}
	if l.Spec.Repaid != nil {
		if b.ledger.continued(l); b.seats.leases[name] != nil {
			return nil
		}
	}
	entry := entryOf(l, charge)
	pod := entry.pod
	b.seats.noteLease(name, entry)
	b.roster.countLease(types.UID(charge.Run), 1)
	b.agenda.stamped(charge.Start)
	b.cuts.tellCutters(types.UID(charge.Run)) // what it holds is not of before their activation any more
	b.ledger.note(entry)
	b.seats.roles[charge.Role] += charge.GPUs
	b.accounts.Open(name.String(), entry.charge)
	b.seats.hold(pod, entry.node, charge.GPUs, func(h *holding) {
		h.leased, h.planned, h.writing = true, false, ""
		h.spare, h.shard = entry.part.Spare, charge.Role == rqv1.RoleBorrowed
		h.run, h.seated = types.UID(charge.Run), false
	})
	if m := b.roster.members[pod]; m != nil && m.stage < leased {
		b.seats.advance(m, leased, entry.node, payerOf(charge))
	} else if m != nil {
		m.payer = payerOf(charge) // it was seen on its node before its Lease, as when a process begins
	}
	if m := b.roster.members[pod]; m != nil && !m.part.Spare {
		b.seats.giveAside(m.gang, m.part.Index)
		delete(m.gang.kept, m.part.Index) // it is paid for
	}
	b.seats.outlives(l)
	return nil
}

// takesIn has what a closed Lease held be free.
func (b *Book) takesIn(l *rqv1.Lease) {
	name, charge := keyOf(l), ChargeIn(l)
	b.closes(l, name, charge)
	if h := b.seats.held[l.PodUID()]; h != nil && h.writing != "" { // so it was written
		b.seats.hold(l.PodUID(), "", 0, (*holding).answer)
		b.waiting.wakeBudget(charge.Payer.Budget)
	}
	if g, part := b.roster.gangs[l.Spec.RunRef.UID], rank.Held(l); g != nil && !part.Spare {
		b.seats.setAside(g, part.Index)
	}
	b.kept.noteUnwound(l)
}

// closes records that a Lease is closed. What paid for a rank of a requeued gang that has not started again goes on
// paying for it, unless it does already for the room that the pod leaves.
func (b *Book) closes(l *rqv1.Lease, name types.NamespacedName, charge budget.Charge) {
	_, open := b.accounts.Charge(name.String())
	b.ledger.noteClosed(l, charge)
	ends := charge
	ends.Loss = lossIn(l)
	b.accounts.Open(name.String(), ends)
	b.ledger.closeLease(name, l.Status.Ended.Time)
	_, left := b.accounts.Charge(charged(l.PodUID()))
	if g := b.roster.gangs[l.Spec.RunRef.UID]; g != nil && open && !left {
		b.seats.keepMoney(g, charge)
	}
}

// LeaseGone records that a Lease is no longer among the open ones. If it is not known when it ended, it goes on
// counting until that has been looked up; a process that stands by reads the whole ledger before it decides.
func (b *Book) LeaseGone(name types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.seats.leases[name]
	switch {
	case l == nil, b.handbacks.has(name):
	case !b.roster.reading:
		b.accounts.Void(name.String())
		b.ledger.vacateLease(name, l, time.Time{})
	default:
		b.mail.lookUp(name)
	}
}

// LeaseLost records that a Lease is gone with its namespace, whose pods were gone before it. What it spent until now
// stays counted, in the records of the Budgets that it returns.
func (b *Book) LeaseLost(name types.NamespacedName, now time.Time) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.handbacks.takeOf(name)
	charge, open := b.accounts.Charge(name.String())
	b.ledger.closeLease(name, now)
	if open && b.accounts.ForgetOf(charge.Payer, name.String()) {
		return []string{charge.Payer.Budget}
	}
	return b.accounts.Forget(name.String())
}

// GPUsByRole returns the GPUs of open Leases by role; a role that none has any more is 0.
func (b *Book) GPUsByRole() map[rqv1.LeaseRole]int {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	return maps.Clone(b.seats.roles)
}
