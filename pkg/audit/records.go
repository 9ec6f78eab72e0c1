package audit

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

func closingOf(lease *rqv1.Lease) closing {
	c := closing{lease: object("Lease", lease), reason: lease.Status.ClosureReason}
	if lease.Status.Ended != nil {
		c.ended = lease.Status.Ended.UnixMicro()
	}
	return c
}

// closings finds Leases whose end is told in part (I4).
func (s *sight) closings() {
	for _, lease := range s.Leases {
		if is := &lease.Status; is.Closed != (is.Ended != nil) || is.Closed != (is.ClosureReason != "") {
			s.find("I4", "", leaseObjects([]*rqv1.Lease{lease}),
				"GPU lease %s says closed: %t, ended: %t, closureReason: %q; all of them are written together",
				nameOf(lease), is.Closed, is.Ended != nil, is.ClosureReason)
		}
	}
}

// rewritten finds Leases that were closed in one look and are otherwise in the next (I4).
func rewritten(before, after *Look) []Finding {
	var out []Finding
	for uid, was := range before.closed {
		is, closed := after.closed[uid]
		_, open := after.open[was.lease.Namespace+"/"+was.lease.Name]
		if closed && is != was || !closed && open {
			out = append(out, newFinding(Violation, "I4", "rewritten", []Object{was.lease},
				"GPU lease %s/%s was closed and has changed since", was.lease.Namespace, was.lease.Name))
		}
	}
	return out
}

// reservations checks the records of activations: that they verify (R21), and why Runs were cut for one that did not
// start (I10).
func (s *sight) reservations() {
	started := s.starts()
	for _, r := range s.Reservations {
		about := []Object{object("Reservation", r)}
		if wrong := unverified(r); len(wrong) > 0 {
			s.find("R21", "", about, "the record of Reservation %s does not verify: %s", nameOf(r), strings.Join(wrong, " "))
		}
		if len(r.Status.Cuts) == 0 || r.Status.ActivatedAt == nil {
			continue
		}
		about = append(about, Object{"Run", r.Spec.RunRef.Namespace, r.Spec.RunRef.Name})
		why := strings.TrimSpace(r.Status.Reason)
		switch state := r.Status.State; {
		case state == rqv1.ReservationCanceled && why == "":
			s.find("I10", "", about, "Reservation %s cut %d times for Run %s, which did not start, and does not say why",
				nameOf(r), len(r.Status.Cuts), r.Spec.RunRef.Name)
		case state == rqv1.ReservationCanceled:
			s.note(Information, "I10", "", about, "Reservation %s cut %d times for Run %s, which did not start: %s", nameOf(r),
				len(r.Status.Cuts), r.Spec.RunRef.Name, why)
		case state == rqv1.ReservationReleased && s.Whole && s.At.Sub(r.Status.ActivatedAt.Time) < s.Retention:
			if last, held := started[types.UID(r.Labels[rqv1.LabelRunUID])]; !held || last < r.Status.ActivatedAt.Unix() {
				s.find("I10", "", about, "Reservation %s cut %d times for Run %s and was released, and no GPU lease of the "+
					"Run began since",
					nameOf(r), len(r.Status.Cuts), r.Spec.RunRef.Name)
			}
		}
	}
}

// starts returns when a Lease of each Run was opened last, Unix time in seconds.
func (s *sight) starts() map[types.UID]int64 {
	out := map[types.UID]int64{}
	for _, lease := range s.Leases {
		uid := lease.Spec.RunRef.UID
		out[uid] = max(out[uid], lease.Spec.Start.Unix())
	}
	return out
}

// unverified returns what is wrong with what a Reservation has published so far.
func unverified(r *rqv1.Reservation) []string {
	l := rqv1.Lottery{}
	if r.Status.Lottery != nil {
		l = *r.Status.Lottery
	}
	switch {
	case l.Nonce != "" || len(l.Draws) > 0 || len(r.Status.Cuts) > 0:
		return resolver.Verify(r)
	case l.ConflictSetDigest != "" && l.ConflictSetDigest != resolver.Digest(r.Status.ConflictSet):
		return []string{"conflictSetDigest is not that of the conflict set."}
	}
	return nil
}
