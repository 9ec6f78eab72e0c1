package leases

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// charge is what one GPU lease is charged, as the scheduler counts (R7): the whole seconds between two instants of
// Unix time, times the GPUs, times the rate.
type charge struct {
	seconds int64
	rate    budget.Rate
	spend   budget.Spend
}

// chargeOf counts an open GPU lease until now; never less than nothing, whatever this machine's clock says.
func chargeOf(lease *rqv1.Lease, now time.Time) (charge, error) {
	rate, err := budget.ParseRate(lease.Spec.Payer.Rate)
	if err != nil {
		return charge{}, fmt.Errorf("GPU lease %s/%s: %w", lease.Namespace, lease.Name, err)
	}
	if lease.Status.Ended != nil {
		now = lease.Status.Ended.Time
	}
	seconds := max(0, now.Unix()-lease.Spec.Start.Unix())
	return charge{seconds, rate, budget.Spend(seconds) * budget.Spend(lease.GPUs()) * budget.Spend(rate)}, nil
}

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
		c, err := chargeOf(lease, now)
		if err != nil {
			return err
		}
		record := []string{spec.RunRef.Namespace, spec.RunRef.Name, string(spec.Owner), string(spec.Payer.Owner),
			spec.Payer.Budget,
			spec.PaidByEnvelope, string(lease.Relation()), string(spec.Slice.Role), session.NodesOf(lease),
			fmt.Sprint(lease.GPUs()),
			spec.Start.UTC().Format(time.RFC3339), endOf(lease), (budget.Spend(c.seconds) * budget.GPUSecond).String(),
			c.rate.String(), c.spend.String(), gpuSeconds(c.spend), string(spec.Reason), string(lease.Status.ClosureReason),
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

// parseSince reads a time to look back, such as 12h or 30d, an instant or a day.
func parseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if days, found := strings.CutSuffix(text, "d"); found {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return now.AddDate(0, 0, -int(n)), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, session.Fail(session.ExitUsage,
		"--since must be a time such as 12h or 30d, an instant such as 2026-01-31T00:00:00Z or a day such as 2026-01-31, "+
			"not %q", text)
}

// openSince tells GPU leases that were open at an instant or later.
func openSince(lease *rqv1.Lease, since time.Time) bool {
	return lease.Status.Ended == nil || lease.Status.Ended.After(since)
}
