package lifecycle

import (
	"cmp"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Whoever deletes a pod by force removes its object and not its containers: its kubelet ends these with the grace
// period that the pod had. They use their GPUs until then, and the kubelet turns away whoever is bound to these.

// apart is by how much the clocks of processes that lead one after the other may differ.
const apart = time.Minute

// endsBy returns until when containers of a Lease's pod may run whose object is gone; zero where none do. What a Lease
// says stands whatever becomes of its Run, unless the node is lost; but it is open for no longer than is allowed now.
func (f *facts) endsBy(lease *rqv1.Lease) time.Time {
	pod, says, last := lease.PodUID(), lease.Status.EndsBy, f.Now.Add(secondsOf(f.longestGrace()))
	if lease.Spec.Slice.Role == rqv1.RoleBorrowed { // who pays does not wait for shards
		last = f.Now.Add(f.OpportunisticGrace)
	}
	v, vanished := f.Vanished[pod]
	switch {
	case f.podOf[pod] != nil, !f.Stands(lease.Node()), says == nil && !vanished:
		return time.Time{}
	case says != nil && !says.After(last.Add(apart)):
		return says.Time
	}
	by := last
	if vanished {
		by = cmp.Or(v.By, f.Now.Add(v.Grace))
	}
	if last.Before(by) {
		by = last
	}
	return by.Truncate(time.Microsecond) // as the API tells it
}

// outlived reports whether containers of a Lease's pod may run although the pod is gone.
func (f *facts) outlived(lease *rqv1.Lease) bool { return f.Now.Before(f.endsBy(lease)) }

// untilEnded returns after what time the next of such containers are to have ended; 0 where there are none.
func (f *facts) untilEnded() (after time.Duration) {
	for _, lease := range f.Leases {
		if f.outlived(lease) {
			after = Soonest(after, f.endsBy(lease).Sub(f.Now))
		}
	}
	return after
}
