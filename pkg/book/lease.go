package book

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	domain string // in which the node was when it was opened; empty where that was not known
	charge budget.Charge
	// attempt of the Run in which it was opened.
	attempt int32
	// held is since when the pod has held its GPUs, and continues says that it had another Lease before.
	held      time.Time
	continues bool
	// outlived says that its pod is gone although it is open.
	outlived bool
	seen     sighting           // of its end
	reason   rqv1.ClosureReason // why it closed; empty while it is open
	ended    time.Time          // when; zero while it is open
	after    time.Time          // when the one ended that its part had before; zero where none is known
	done     *lease             // that one, if its pod had completed
}

// follows notes the Lease that its part had before in the same attempt: for the next one nothing is kept from then on.
func (l *lease) follows(before *lease) {
	if l.attempt == before.attempt {
		l.after = latest(l.after, before.ended)
	}
	if before.reason == rqv1.ClosedCompleted {
		l.done, before.done = before, nil
	}
}

// inherits has a Lease follow what its part had before it was known to be closed.
func (l *lease) inherits(open *lease) { l.after, l.done = open.after, open.done }

// unwoundFrom reports whether a Lease of a gang that runs closed before its pod was bound: its rank is as it was.
func (l *lease) unwoundFrom(g *gang) bool { return g.started() && l.reason == rqv1.ClosedUnwound }

// vainly reports whether the place of a Lease was kept for its pod for longer than the pod then had it, by when it
// ended: for so long at most as places are kept. What a node did is nobody's doing.
func (l *lease) vainly(most time.Duration) bool {
	kept := l.held.Sub(l.after)
	return !l.after.IsZero() && kept > rqv1.HeldUnpaid && kept <= most && l.ended.Sub(l.held) < kept && !l.lost()
}

// lost reports whether a Lease closed by its node's doing: that was lost, has ended the pod or turned it away, or was
// to be left for maintenance.
func (l *lease) lost() bool {
	return l.reason == rqv1.ClosedNodeFailure || l.reason == rqv1.ClosedEvicted || l.moved()
}

// moved reports whether a Lease closed since its pod left its node for maintenance.
func (l *lease) moved() bool { return l.reason == rqv1.ClosedMaintenance }

// died reports whether a Lease closed since its pod failed by itself.
func (l *lease) died() bool { return l.reason == rqv1.ClosedFailed }

// before reports whether a Lease was opened before another of the same part of its Run: clocks may be set back. Of two
// that were opened at one instant the one is the earlier that has outlived its pod, or else has ended.
func (l *lease) before(other *lease) bool {
	return cmp.Or(cmp.Compare(l.attempt, other.attempt), l.charge.Start.Compare(other.charge.Start),
		cmp.Compare(l.stands(), other.stands())) < 0
}

// stands returns how much of a Lease there is to go on: nothing once its pod has vanished, and most while it is open.
func (l *lease) stands() int {
	switch {
	case l.outlived:
		return 0
	case l.reason != "":
		return 1
	}
	return 2
}

// payer is who pays for a pod, and what it is to the Run's owner.
type payer struct {
	key      budget.Key
	relation rqv1.Relation
}

// sighting is when it was first seen that something is about to be free which the API does not tell an instant of. It
// begins anew once the pod has ended.
type sighting struct {
	at    time.Time
	ended bool
}

func payerOf(c budget.Charge) payer { return payer{c.Payer, c.Relation} }

// leaseOf returns the name of the Lease that a pod has, or is to have.
func (s *seating) leaseOf(pod *corev1.Pod) types.NamespacedName {
	if later, repaid := s.current[pod.UID]; repaid {
		return later
	}
	return leaseName(pod)
}

// leaseName returns the name of a pod's first Lease. It is made of the pod's name and UID, so that whoever writes it,
// and however often, there is one.
func leaseName(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: rank.LeaseName(pod.Name, pod.UID)}
}

// entryOf returns what the book keeps of a Lease.
func entryOf(l *rqv1.Lease, charge budget.Charge) *lease {
	out := &lease{
		pod: l.PodUID(), part: rank.Held(l),
		run:  types.NamespacedName{Namespace: l.Spec.RunRef.Namespace, Name: l.Spec.RunRef.Name},
		node: l.Node(), domain: l.Annotations[rqv1.AnnotationDomain], charge: charge,
		attempt: l.Spec.Attempt, reason: l.Status.ClosureReason,
		held: l.HeldSince(), continues: l.Spec.Repaid != nil, outlived: l.Status.EndsBy != nil,
	}
	if l.Status.Ended != nil {
		out.ended = l.Status.Ended.Time
	}
	return out
}

// noteLease knows an open Lease from now on.
func (s *seating) noteLease(name types.NamespacedName, l *lease) {
	run := types.UID(l.charge.Run)
	if s.ofRun[run] == nil {
		s.ofRun[run] = map[types.NamespacedName]*lease{}
	}
	s.leases[name], s.ofRun[run][name] = l, l
	if l.continues {
		s.current[l.pod] = name
	}
}

// forgetLease forgets one that is not open any more.
func (s *seating) forgetLease(name types.NamespacedName, l *lease) {
	run := types.UID(l.charge.Run)
	delete(s.leases, name)
	if delete(s.ofRun[run], name); len(s.ofRun[run]) == 0 {
		delete(s.ofRun, run)
	}
	if s.current[l.pod] == name {
		delete(s.current, l.pod)
	}
	s.closed(name, run)
}

// lossIn returns the work that was lost with a Lease, that of its Run's other GPUs included.
func lossIn(l *rqv1.Lease) budget.Loss {
	lost := l.Status.Lost
	if lost == nil {
		return budget.Loss{}
	}
	return budget.Loss{Cause: l.Status.Cause,
		Work: budget.Spend(lost.GPUSeconds+lost.OthersGPUSeconds) * budget.GPUSecond}
}

// ChargeIn returns the charge that a Lease records.
func ChargeIn(l *rqv1.Lease) budget.Charge {
	rate, err := budget.ParseRate(l.Spec.Payer.Rate)
	if err != nil {
		rate = budget.FullRate // the API admits no such rate
	}
	c := budget.Charge{
		Payer: budget.Key{Budget: l.Spec.Payer.Budget, Envelope: l.Spec.PaidByEnvelope}, Owner: l.Spec.Owner,
		Run: string(l.Spec.RunRef.UID), Relation: l.Relation(), GPUs: int(l.GPUs()), Role: l.Spec.Slice.Role, Rate: rate,
		Start: l.Spec.Start.Time,
	}
	if l.Spec.Until != nil {
		c.Until = l.Spec.Until.Time
	}
	if l.Spec.Admitted != nil {
		c.Admitted = l.Spec.Admitted.Time
	}
	c.Flavor, c.Node = l.Spec.Flavor, l.Node()
	return c
}
