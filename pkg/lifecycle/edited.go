package lifecycle

import (
	"slices"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// edited reports whether a Run that is starting has Leases that its spec, as it is by now, would not have opened: its owner,
// funding or maxDuration was edited meanwhile, so that who pays is worked out anew, for all of it.
func (s *state) edited() bool {
	if was := s.Run.Status.Phase; was != rqv1.RunPending && was != "" {
		return false
	}
	borrowed := int32(0)
	for _, pod := range slices.Concat(s.pods, s.spares, s.beyond) {
		if !alive(pod) || s.leases[pod.UID] == nil || s.doomed(pod) {
			continue
		}
		lease := s.leases[pod.UID]
		if lease.Spec.Owner != s.Run.Spec.Owner || !s.lasts(lease) {
			return true
		}
		if lease.Relation() == rqv1.RelationSponsor {
			borrowed += lease.GPUs()
			if f := s.Run.Spec.Funding; f == nil || !f.AllowBorrow || !slices.Contains(f.Sponsors, lease.Spec.Payer.Owner) {
				return true
			}
		}
	}
	f := s.Run.Spec.Funding
	return borrowed > 0 && f.MaxBorrowGPUs != nil && borrowed > *f.MaxBorrowGPUs
}

// lasts reports whether a Lease of a Run that starts ends when the Run's maxDuration says, to the microsecond, as it is kept.
func (s *state) lasts(lease *rqv1.Lease) bool {
	r := s.Run.Spec.Runtime
	if lease.Spec.Until == nil || r == nil || r.MaxDuration == nil {
		return lease.Spec.Until == nil && (r == nil || r.MaxDuration == nil)
	}
	off := lease.Spec.Until.Sub(lease.Spec.Start.Time) - r.MaxDuration.Duration
	return off.Abs() < 2*time.Microsecond
}
