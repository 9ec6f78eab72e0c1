package lifecycle

import (
	"slices"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// edited reports whether a Run that is starting has Leases that its spec, as it is by now, would not have opened: its
// owner, funding or maxDuration was edited meanwhile, so that who pays is worked out anew, for all of it.
func edited(f *facts, c *cuts, r *roster) bool {
	if !saysPending(f.Run) {
		return false
	}
	spec := &f.Run.Spec
	borrowed := int32(0)
	for _, pod := range r.all() {
		if !active(pod) || c.doom(pod) {
			continue
		}
		lease := f.leaseOf[pod.UID]
		if lease == nil {
			continue
		}
		if lease.Spec.Owner != spec.Owner || !lasts(lease, spec) {
			return true
		}
		if lease.Relation() == rqv1.RelationSponsor {
			borrowed += lease.GPUs()
			if !sponsored(spec.Funding, lease.Spec.Payer.Owner) {
				return true
			}
		}
	}
	most := spec.Funding
	return borrowed > 0 && most.MaxBorrowGPUs != nil && borrowed > *most.MaxBorrowGPUs
}

// sponsored reports whether a Run may borrow from an owner.
func sponsored(funding *rqv1.RunFunding, owner rqv1.Owner) bool {
	return funding != nil && funding.AllowBorrow && slices.Contains(funding.Sponsors, owner)
}

// lasts reports whether a Lease of a Run that starts ends when the Run's maxDuration says, to the microsecond, as it is
// kept.
func lasts(lease *rqv1.Lease, spec *rqv1.RunSpec) bool {
	limited := spec.Runtime != nil && spec.Runtime.MaxDuration != nil
	if lease.Spec.Until == nil || !limited {
		return lease.Spec.Until == nil && !limited
	}
	off := lease.Spec.Until.Sub(lease.HeldSince()) - spec.Runtime.MaxDuration.Duration
	return off.Abs() < 2*time.Microsecond
}
