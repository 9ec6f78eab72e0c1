package audit_test

import (
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/audit"
)

// TestRepaid has the Lease of a rank be open beside the one that takes its place, as when a process dies between the
// two writes, and then closed. Either way it counts once, up to the instant at which the other begins.
func TestRepaid(t *testing.T) {
	for _, between := range []bool{true, false} {
		w := sound()
		second := lease(w.Runs[0], w.Pods[0], 8, 30*time.Minute)
		second.Name, second.UID, second.Spec.Reason = second.Name+"-2", "second", rqv1.ReasonRepaid
		w.Leases = append(w.Leases, second)
		if !between {
			closed(w.Leases[0], 30*time.Minute, rqv1.ClosedRepaid)
		}
		look := rules(t).Look(w)
		if found := audit.Standing(look, look); len(found) > 0 {
			t.Errorf("between the writes: %t: found %v", between, found)
		}
		if !between {
			continue
		}
		w.Leases[0] = closed(w.Leases[0].DeepCopy(), 30*time.Minute, rqv1.ClosedRepaid)
		w.Leases[0].Status.Cause = rqv1.CauseScheduler
		if found := audit.Standing(look, rules(t).Look(w)); len(found) > 0 {
			t.Errorf("once it is closed: found %v", found)
		}
	}
}
