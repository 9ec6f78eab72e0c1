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
)

// LabelPod is the label of a Lease that holds the UID of its pod.
const LabelPod = rqv1.GroupName + "/pod-uid"

// lease is an open Lease as the ledger holds it.
type lease struct {
	pod    types.UID
	node   string
	charge budget.Charge
}

// leaseName returns the name of a pod's Lease. It is made of the pod's name and UID, so that whoever writes it, and
// however often, there is one Lease per pod.
func leaseName(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: LeaseName(pod.Name, pod.UID)}
}

// LeaseName returns the name of the Lease of a pod.
func LeaseName(pod string, uid types.UID) string {
	return pod + "-" + string(uid[:min(8, len(uid))])
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
	if m.stage == reserved {
		b.advance(m, writing, m.node, m.payer)
		b.hold(pod, "", 0, func(h *holding) { h.writing = true })
	}
	g, name := m.gang, leaseName(m.pod)
	cohort, _ := strconv.ParseInt(m.pod.Labels[rqv1.LabelCohort], 10, 32)
	labels := map[string]string{LabelPod: string(pod)}
	for _, key := range []string{rqv1.LabelRun, rqv1.LabelGroupIndex, rqv1.LabelRole, rqv1.LabelCohort, rqv1.LabelIndex} {
		labels[key] = m.pod.Labels[key]
	}
	return &rqv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, Labels: labels},
		Spec: rqv1.LeaseSpec{
			Owner:      g.run.Spec.Owner,
			RunRef:     rqv1.LeaseRunRef{Name: g.run.Name, Namespace: g.run.Namespace, UID: g.run.UID},
			GroupIndex: int32(m.group()),
			Cohort:     int32(cohort),
			Slice: rqv1.LeaseSlice{
				Role:  m.part.Role(),
				Nodes: []rqv1.NodeGPUs{{Name: m.node, GPUs: int32(g.demand.GPUsPerPod)}},
			},
			Payer:          rqv1.LeasePayer{Budget: m.payer.Budget, Owner: b.payerOwner(m)},
			PaidByEnvelope: m.payer.Envelope,
			Reason:         rqv1.ReasonStart,
			Start:          metav1.NewMicroTime(now),
		},
	}, nil
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
	if charge, ok := b.accounts.Close(name.String()); ok {
		b.wakeBudget(charge.Owner)
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
	if payer := b.accounts.Budget(m.payer.Budget); payer != nil {
		return payer.Spec.Owner
	}
	return m.gang.demand.Owner
}

// SetLease records an open Lease: its charge and its GPUs stay taken until it is closed. The ledger decides where its pod
// goes, whatever was planned.
func (b *Book) SetLease(l *rqv1.Lease) {
	b.mu.Lock()
	defer b.unlock()
	if l.Status.Closed {
		b.closeLease(client(l))
		return
	}
	if b.leases[client(l)] != nil {
		return
	}
	pod := types.UID(l.Labels[LabelPod])
	held := l.Spec.Slice.Nodes[0]
	entry := &lease{pod: pod, node: held.Name, charge: budget.Charge{
		Payer: budget.Key{Budget: l.Spec.Payer.Budget, Envelope: l.Spec.PaidByEnvelope},
		Owner: l.Spec.Owner, GPUs: int(held.GPUs), Role: l.Spec.Slice.Role,
	}}
	b.leases[client(l)] = entry
	if m := b.members[pod]; m != nil && m.stage > unplaced && m.stage < leased && m.payer != entry.charge.Payer {
		b.accounts.Close(client(l).String())
	}
	b.accounts.Open(client(l).String(), entry.charge)
	b.hold(pod, entry.node, entry.charge.GPUs, func(h *holding) { h.leased, h.planned, h.writing = true, false, false })
	if m := b.members[pod]; m != nil && m.stage < leased {
		b.advance(m, leased, entry.node, entry.charge.Payer)
	}
}

// HasLease reports whether a pod's Lease is known to be open.
func (b *Book) HasLease(pod types.UID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.held[pod]
	return h != nil && h.leased
}

// DeleteLease records that a Lease is closed, or gone with its namespace.
func (b *Book) DeleteLease(name types.NamespacedName) {
	b.mu.Lock()
	defer b.unlock()
	b.closeLease(name)
}

func (b *Book) closeLease(name types.NamespacedName) {
	l := b.leases[name]
	if l == nil {
		return
	}
	delete(b.leases, name)
	b.accounts.Close(name.String())
	if h := b.held[l.pod]; h != nil && h.vacant {
		b.accounts.Open(vacancy(l.pod), l.charge)
		b.wakeRoom(b.nodeFlavor(l.node))
	}
	b.hold(l.pod, "", 0, func(h *holding) { h.leased = false })
	b.wakeBudget(l.charge.Owner)
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
