package book

import (
	"fmt"
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// lease is an open Lease as the ledger holds it.
type lease struct {
	pod    types.UID
	part   rank.Part
	run    types.NamespacedName
	node   string
	charge budget.Charge
	seen   sighting           // of its end
	reason rqv1.ClosureReason // why it closed; empty while it is open
}

func payerOf(c budget.Charge) payer { return payer{c.Payer, c.Relation} }

// leaseName returns the name of a pod's Lease. It is made of the pod's name and UID, so that whoever writes it, and
// however often, there is one Lease per pod.
func leaseName(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: rank.LeaseName(pod.Name, pod.UID)}
}

// NewLease returns the Lease that a reserved pod is to hold from now on. Until the ledger is known to hold it, or
// NotWritten tells that it does not, the pod keeps its node.
func (b *Book) NewLease(pod types.UID, now time.Time) (*rqv1.Lease, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.members[pod]
	if m == nil || m.stage < reserved || m.gang.run == nil {
		return nil, fmt.Errorf("the pod is no longer part of a gang that starts")
	}
	if m.doomed() { // the Lease would be younger than the decision, which is about what was held then
		return nil, fmt.Errorf("the pod is cut")
	}
	if m.stage == reserved {
		b.advance(m, writing, m.node, m.payer)
		b.hold(pod, "", 0, func(h *holding) { h.writing = true })
	}
	g, name := m.gang, leaseName(m.pod)
	cohort, _ := strconv.ParseInt(m.pod.Labels[rqv1.LabelCohort], 10, 32)
	labels := map[string]string{rqv1.LabelPodUID: string(pod)}
	for _, key := range []string{rqv1.LabelRun, rqv1.LabelGroupIndex, rqv1.LabelRole, rqv1.LabelCohort, rqv1.LabelIndex} {
		labels[key] = m.pod.Labels[key]
	}
	if epoch, ok := m.pod.Labels[rqv1.LabelEpoch]; ok {
		labels[rqv1.LabelEpoch] = epoch
	}
	charge := b.chargeOf(m, now)
	return &rqv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, Labels: labels},
		Spec: rqv1.LeaseSpec{
			Owner:      g.run.Spec.Owner,
			RunRef:     rqv1.LeaseRunRef{Name: g.run.Name, Namespace: g.run.Namespace, UID: g.run.UID},
			GroupIndex: int32(m.group()),
			Cohort:     int32(cohort),
			Slice: rqv1.LeaseSlice{
				Role:  charge.Role,
				Nodes: []rqv1.NodeGPUs{{Name: m.node, GPUs: int32(charge.GPUs)}},
			},
			Payer: rqv1.LeasePayer{Budget: charge.Payer.Budget, Owner: b.payerOwner(m), Relation: charge.Relation,
				Rate: charge.Rate.String()},
			PaidByEnvelope: charge.Payer.Envelope,
			Reason:         reasonFor(m),
			Start:          metav1.NewMicroTime(now),
			Until:          instant(charge.Until),
			Admitted:       instant(charge.Admitted),
			Flavor:         charge.Flavor,
		},
	}, nil
}

// reasonFor returns why a member's Lease is opened.
func reasonFor(m *member) rqv1.LeaseReason {
	if _, replaces := rank.ReplacementOf(m.pod); replaces {
		return rqv1.ReasonSwap
	}
	if m.joins() {
		return rqv1.ReasonGrow
	}
	return rqv1.ReasonStart
}

// NotWritten tells that the ledger does not hold a Lease that was being written for a pod, which may be gone meanwhile.
func (b *Book) NotWritten(pod types.UID, name types.NamespacedName) {
	b.mu.Lock()
	defer b.unlock()
	if b.leases[name] != nil {
		return
	}
	if m := b.members[pod]; m != nil {
		if m.stage == writing {
			b.advance(m, reserved, m.node, m.payer)
			b.hold(pod, "", 0, func(h *holding) { h.writing = false })
		}
		return
	}
	if charge, ok := b.accounts.Void(name.String()); ok {
		b.wakeBudget(charge.Payer.Budget)
	}
	b.hold(pod, "", 0, func(h *holding) { h.writing = false })
}

// Unsettled reports whether a pod is gone whose Lease may or may not have been written.
func (b *Book) Unsettled(pod types.UID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.held[pod]
	return b.members[pod] == nil && h != nil && h.writing
}

// payerOwner returns the owner of the Budget that pays for a member; the Run's own when the Budget is gone.
func (b *Book) payerOwner(m *member) rqv1.Owner {
	if payer := b.accounts.Budget(m.payer.key.Budget); payer != nil {
		return payer.Spec.Owner
	}
	return m.gang.demand.Owner
}

// SetLease records a Lease. While it is open its charge and its GPUs stay taken, and its pod goes where it says, whatever
// was planned. When it is closed, what it spent remains. It returns the Budgets that are to be settled at once, since the namespace
// of a closed Lease is being deleted, and its object with it.
func (b *Book) SetLease(l *rqv1.Lease) []string {
	b.mu.Lock()
	defer b.unlock()
	name, charge := keyOf(l), ChargeIn(l)
	if l.Status.Closed {
		b.noteClosed(l, charge)
		b.accounts.Open(name.String(), charge)
		b.closeLease(name, l.Status.Ended.Time)
		b.noteUnwound(l)
		if b.accounts.Leaves(name.String()) {
			return []string{charge.Payer.Budget}
		}
		return nil
	}
	if b.leases[name] != nil || b.accounts.IsPast(name.String(), charge.Payer) {
		return nil
	}
	entry := entryOf(l, charge)
	pod := entry.pod
	b.leases[name] = entry
	b.note(entry)
	b.roles[charge.Role] += charge.GPUs
	b.accounts.Open(name.String(), charge)
	b.hold(pod, entry.node, charge.GPUs, func(h *holding) {
		h.leased, h.planned, h.writing = true, false, false
		h.spare, h.shard = entry.part.Spare, charge.Role == rqv1.RoleBorrowed
		h.run, h.seated = types.UID(charge.Run), false
	})
	if m := b.members[pod]; m != nil && m.stage < leased {
		b.advance(m, leased, entry.node, payerOf(charge))
	}
	if m := b.members[pod]; m != nil && !m.part.Spare {
		delete(m.gang.kept, m.part.Index) // it is paid for
	}
	return nil
}

// LeaseGone records that a Lease is no longer among the open ones. If it is not known when it ended, it goes on counting
// until that has been looked up; a process that does not decide yet reads the whole ledger before it does.
func (b *Book) LeaseGone(name types.NamespacedName) {
	b.mu.Lock()
	defer b.unlock()
	l := b.leases[name]
	switch {
	case l == nil:
	case !b.open:
		b.accounts.Void(name.String())
		b.free(name, l, time.Time{})
	default:
		b.lookUp(name)
	}
}

// LeaseLost records that a Lease is gone with its namespace, whose pods were gone before it. What it spent until now stays counted,
// in the records of the Budgets that it returns.
func (b *Book) LeaseLost(name types.NamespacedName, now time.Time) []string {
	b.mu.Lock()
	defer b.unlock()
	b.closeLease(name, now)
	return b.accounts.Forget(name.String())
}

// closeLease ends a Lease: what it spent stays, and what it holds is free unless it is kept for a replacement.
func (b *Book) closeLease(name types.NamespacedName, ended time.Time) {
	b.accounts.Close(name.String(), ended)
	if l := b.leases[name]; l != nil {
		b.free(name, l, ended)
	}
}

// free gives back what a Lease holds. What is kept for a replacement is paid for by the same payer from then on.
func (b *Book) free(name types.NamespacedName, l *lease, ended time.Time) {
	delete(b.leases, name)
	b.roles[l.charge.Role] -= l.charge.GPUs
	b.noteEnd(l, ended)
	if h := b.held[l.pod]; h != nil && h.vacant {
		kept := l.charge
		kept.Start = ended
		b.accounts.Open(charged(l.pod), kept)
		b.wakeRoom(b.nodeFlavor(l.node))
	}
	b.hold(l.pod, "", 0, func(h *holding) { h.leased = false })
	b.tellCutters(types.UID(l.charge.Run))
	b.wakeBudget(l.charge.Payer.Budget)
}

// HeldGPUs returns the GPUs of open Leases by role; a role that none has any more is 0.
func (b *Book) HeldGPUs() map[rqv1.LeaseRole]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.roles)
}

// OpenLeases returns the charges of the open Leases by name: what the counters must add up to (I8).
func (b *Book) OpenLeases() map[types.NamespacedName]budget.Charge {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make(map[types.NamespacedName]budget.Charge, len(b.leases))
	for name, l := range maps.All(b.leases) {
		out[name] = l.charge
	}
	return out
}
