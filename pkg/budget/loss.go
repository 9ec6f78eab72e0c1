package budget

import (
	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Loss is work that was lost as a Lease closed, since it was saved last (R45): no charge, but part of what was spent.
type Loss struct {
	Cause rqv1.EndCause
	Work  Spend
}

// causes are those by which work is lost, in the order in which they are counted and shown.
var causes = [...]rqv1.EndCause{rqv1.CauseNode, rqv1.CauseProgram, rqv1.CauseUser, rqv1.CauseScheduler}

// losses are amounts of lost work by cause.
type losses [len(causes)]Spend

func (l *losses) add(o *losses) {
	for i := range l {
		l[i] += o[i]
	}
}

// causeOf returns where a cause is counted. What has none that is known is the scheduler's doing: it closed the Lease.
func causeOf(cause rqv1.EndCause) int {
	for i := range causes {
		if causes[i] == cause {
			return i
		}
	}
	return len(causes) - 1
}

// lostByCause returns the work that was lost in the window with Leases that an envelope paid for, without causes by
// which none was.
func (a *account) lostByCause() (out []rqv1.LostGPUHours) {
	sum := a.settledLost
	sum.add(&a.lost)
	for i, cause := range causes {
		if sum[i] != 0 {
			out = append(out, rqv1.LostGPUHours{Cause: cause, GPUHours: sum[i].String()})
		}
	}
	return out
}
