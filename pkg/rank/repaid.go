package rank

import (
	"maps"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Exchange is two pods of a Run that have each other's payers from an instant on, and go on otherwise as they were.
// What is written first, Now[0], says so of both: from then on it has happened, whoever writes the rest.
type Exchange struct {
	// Was are the Leases that the two had, and Now those that they have instead.
	Was, Now [2]*rqv1.Lease
}

// Exchanged returns the exchange of the payers of two open Leases at an instant.
func Exchanged(one, other *rqv1.Lease, at time.Time) Exchange {
	return Exchange{
		Was: [2]*rqv1.Lease{one, other},
		Now: [2]*rqv1.Lease{continued(one, other, at), continued(other, one, at)},
	}
}

// continued returns the Lease by which a pod goes on that has the payer of another from an instant on.
func continued(l, other *rqv1.Lease, at time.Time) *rqv1.Lease {
	out := &rqv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace,
		Name: NextLeaseName(l.Name, l.Spec.Repaid != nil), Labels: maps.Clone(l.Labels)}}
	if domain, told := l.Annotations[rqv1.AnnotationDomain]; told {
		out.Annotations = map[string]string{rqv1.AnnotationDomain: domain}
	}
	l.Spec.DeepCopyInto(&out.Spec)
	out.Spec.Payer.Budget, out.Spec.Payer.Owner = other.Spec.Payer.Budget, other.Spec.Payer.Owner
	out.Spec.Payer.Relation, out.Spec.PaidByEnvelope = other.Relation(), other.Spec.PaidByEnvelope
	// The payer has paid since then and does until then, whichever pod for: neither what of his is overdraft (R8) nor the
	// GPU-hours that he has promised change (R7).
	out.Spec.Until = other.Spec.Until.DeepCopy()
	out.Spec.Admitted = other.Spec.Admitted.DeepCopy()
	if out.Spec.Admitted == nil {
		out.Spec.Admitted = other.Spec.Start.DeepCopy()
	}
	out.Spec.Repaid = &rqv1.LeaseRepaid{Lease: l.Name, With: other.Name, HeldSince: metav1.NewMicroTime(l.HeldSince())}
	out.Spec.Reason, out.Spec.Start = rqv1.ReasonRepaid, metav1.NewMicroTime(at)
	return out
}

// Begin has an exchange be as its first Lease says that is stored; false when that is of another exchange.
func (x *Exchange) Begin(first *rqv1.Lease) bool {
	if x.Was[1] != nil && first.Spec.Repaid.With != x.Was[1].Name {
		return false
	}
	if other := x.Now[1]; other != nil && !other.Spec.Start.Equal(&first.Spec.Start) {
		x.Now[1] = Exchanged(x.Was[0], x.Was[1], first.Spec.Start.Time).Now[1]
	}
	x.Now[0] = first
	return true
}

// Continues reports whether the pod of a Lease goes on by another, on another payer.
func Continues(l, was *rqv1.Lease) bool {
	return l.PodUID() == was.PodUID() && l.Spec.Repaid != nil && l.Spec.Repaid.Lease == was.Name
}

// NextLeaseName returns the name of the Lease by which a pod goes on that had one of a name, itself the pod's first or
// one that continues another.
func NextLeaseName(name string, continues bool) string {
	number, of := 2, len(name)
	if continues {
		for of > 0 && name[of-1] != '-' {
			of--
		}
		last, _ := strconv.Atoi(name[of:])
		number, of = last+1, of-1
	}
	suffix := "-" + strconv.Itoa(number)
	if keep := longestName - len(suffix); of > keep { // the end of it is the pod's own
		return name[of-keep:of] + suffix
	}
	return name[:of] + suffix
}

// Unfinished returns the exchanges that have happened, as some Leases tell, and of which not everything is written: of
// these Leases some are open that are not to be, or lack those that they are continued by.
func Unfinished(leases []*rqv1.Lease) []Exchange {
	if !slices.ContainsFunc(leases, func(l *rqv1.Lease) bool { return l.Spec.Repaid != nil }) {
		return nil
	}
	var out []Exchange
	by := map[types.NamespacedName]*rqv1.Lease{}
	for _, l := range leases {
		by[l.Key()] = l
	}
	seen := map[*rqv1.Lease]bool{}
	for _, l := range leases {
		r := l.Spec.Repaid
		if r == nil || seen[l] {
			continue
		}
		was := by[types.NamespacedName{Namespace: l.Namespace, Name: r.Lease}]
		with := by[types.NamespacedName{Namespace: l.Namespace, Name: r.With}]
		was, with = stillOpen(was), stillOpen(with)
		if was == nil {
			continue // nothing is left of it, or the other one tells
		}
		x := Exchange{Was: [2]*rqv1.Lease{was, with}, Now: [2]*rqv1.Lease{l, nil}}
		if with != nil {
			x.Now[1] = Exchanged(was, with, l.Spec.Start.Time).Now[1]
			if is := by[x.Now[1].Key()]; is != nil {
				x.Now[1] = is
			}
		}
		if x.Now[1] != nil {
			seen[x.Now[1]] = true
		}
		out = append(out, x)
	}
	return out
}

func stillOpen(l *rqv1.Lease) *rqv1.Lease {
	if l == nil || l.Status.Closed {
		return nil
	}
	return l
}

// AsPaid returns some Leases as they are once all exchanges that have happened are written: each pod has one that is
// open. It changes none of them.
func AsPaid(leases []*rqv1.Lease) []*rqv1.Lease {
	unfinished := Unfinished(leases)
	if len(unfinished) == 0 {
		return leases
	}
	out := slices.Clone(leases)
	for _, x := range unfinished {
		for _, closed := range x.Closed() {
			out[slices.IndexFunc(out, func(l *rqv1.Lease) bool { return l.Key() == closed.Key() })] = closed
		}
		if now := x.Now[1]; now != nil && !slices.Contains(out, now) {
			out = append(out, now)
		}
	}
	return out
}

// Closed returns those of the Leases that the pods had which are still open, closed.
func (x *Exchange) Closed() []*rqv1.Lease {
	var out []*rqv1.Lease
	for _, l := range x.Was {
		if l == nil {
			continue
		}
		l = l.DeepCopy()
		at := x.Now[0].Spec.Start
		l.Status = rqv1.LeaseStatus{Closed: true, Ended: &at, ClosureReason: rqv1.ClosedRepaid}
		out = append(out, l)
	}
	return out
}
