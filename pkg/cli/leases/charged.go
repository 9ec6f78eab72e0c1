package leases

import (
	"encoding/csv"
	"fmt"
	"io"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

var csvHeader = []string{"namespace", "run", "run_owner", "payer_owner", "budget", "envelope", "relation", "role",
	"node",
	"gpus", "start", "end", "hours", "rate", "gpu_hours", "gpu_seconds", "reason", "closure_reason", "lease", "cause",
	"lost_gpu_seconds"}

// writeCSV writes GPU leases a line each, quoted as RFC 4180 has it.
func writeCSV(out io.Writer, leases []rqv1.Lease, now time.Time) error {
	w := csv.NewWriter(out)
	if err := w.Write(csvHeader); err != nil {
		return err
	}
	for i := range leases {
		lease := &leases[i]
		spec := &lease.Spec
		c, err := view.ChargeOf(lease, now)
		if err != nil {
			return err
		}
		record := []string{spec.RunRef.Namespace, spec.RunRef.Name, string(spec.Owner), string(spec.Payer.Owner),
			spec.Payer.Budget,
			spec.PaidByEnvelope, string(lease.Relation()), string(spec.Slice.Role), session.NodesOf(lease),
			fmt.Sprint(lease.GPUs()),
			spec.Start.UTC().Format(time.RFC3339), endOf(lease), (budget.Spend(c.Seconds) * budget.GPUSecond).String(),
			c.Rate.String(), c.Spend.String(), gpuSeconds(c.Spend), string(spec.Reason), string(lease.Status.ClosureReason),
			lease.Name, string(lease.Status.Cause), lostSeconds(lease)}
		if err := w.Write(record); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// lostSeconds prints the work that was lost with a GPU lease, that of the Run's other GPUs included; nothing where none
// was.
func lostSeconds(lease *rqv1.Lease) string {
	lost := lease.Status.Lost
	if lost == nil {
		return ""
	}
	return fmt.Sprint(lost.GPUSeconds + lost.OthersGPUSeconds)
}

// gpuSeconds prints GPU-seconds exactly, with three decimals.
func gpuSeconds(s budget.Spend) string {
	return fmt.Sprintf("%d.%03d", s/budget.GPUSecond, s%budget.GPUSecond)
}

// openSince tells GPU leases that were open at an instant or later.
func openSince(lease *rqv1.Lease, since time.Time) bool {
	return lease.Status.Ended == nil || lease.Status.Ended.After(since)
}
