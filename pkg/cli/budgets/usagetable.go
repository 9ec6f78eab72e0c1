package budgets

import (
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// writeUsage writes usage as tables: envelopes, then aggregate caps, then what is wrong, where there is any.
func writeUsage(out io.Writer, u Usage, form session.Form) error {
	envelopes, caps := envelopeTable(u.Envelopes), capTable(u.AggregateCaps)
	session.LocalCells(envelopes, u.At.Time)
	session.LocalCells(caps, u.At.Time)
	if err := form.Print(envelopes, out, false); err != nil {
		return err
	}
	if len(u.AggregateCaps) > 0 {
		fmt.Fprintln(out)
		if err := form.Print(caps, out, false); err != nil {
			return err
		}
	}
	for i, c := range u.Conditions {
		if i == 0 {
			fmt.Fprintln(out)
		}
		if _, err := fmt.Fprintln(out, c.inWords()); err != nil {
			return err
		}
	}
	return nil
}

func (c *budgetCondition) inWords() string {
	what := "is overdrawn"
	if c.Type == rqv1.ConditionCircular {
		what = "has circular parents"
	}
	return printers.EscapeTerminal(fmt.Sprintf("! Budget %s of %s %s (%s): %s", c.Budget, c.Owner, what, c.Reason,
		c.Message))
}

func envelopeTable(rows []envelopeUsage) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: session.Columns(
		"+Owner", "Budget", "Envelope", "Type~5", "Concurrency", "Owned~2", "Family?~6", "Lent?~6", "Spare?~6",
		"Overdraft?~1", "Free", "+Lendable", "+Opportunistic", "GPU-Hours Spent~3", "Lost?~8", "+Lost By", "Left?~4",
		"+Promised", "+Hourly", "Runs Out?~7", "+Window", "+Observed")}
	for i := range rows {
		e := &rows[i]
		gpus := func(n int32) string { return seen(e.ObservedAt, fmt.Sprint(n)) }
		table.Rows = append(table.Rows, session.Row(nil,
			string(e.Owner), e.Budget, e.Envelope, e.Flavor, fmt.Sprint(e.Concurrency),
			gpus(e.OwnedGPUs), gpus(e.FamilyGPUs), gpus(e.LentGPUs), gpus(e.SpareGPUs), gpus(e.OverdraftGPUs), gpus(e.FreeGPUs),
			gpus(e.LendableGPUs), gpus(e.OpportunisticGPUs),
			seen(e.ObservedAt, view.Short(e.SpentGPUHours)), seen(e.ObservedAt, view.Short(e.LostGPUHours)), e.lostBy(),
			seen(e.ObservedAt, e.left()),
			seen(e.ObservedAt, view.Short(e.PromisedGPUHours)), seen(e.ObservedAt, view.Short(e.HourlyGPUHours)), e.end(),
			windowOf(e.Start, e.End), view.Timestamp(e.ObservedAt)))
	}
	return table
}

// lostBy says how much was lost by which cause, such as Node 1.50, Program 0.25; nothing when none was.
func (e *envelopeUsage) lostBy() string {
	words := make([]string, len(e.LostByCause))
	for i, l := range e.LostByCause {
		words[i] = fmt.Sprintf("%s %s", l.Cause, view.Short(l.GPUHours))
	}
	return strings.Join(words, ", ")
}

func capTable(rows []capUsage) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: session.Columns("+Owner", "Budget", "Aggregate-Cap", "Type~5",
		"Envelopes~6", "Concurrency", "Used~1", "Free", "GPU-Hours Spent~2", "Left~3", "+Promised", "+Hourly", "Runs Out~4")}
	for i := range rows {
		c := &rows[i]
		table.Rows = append(table.Rows, session.Row(nil,
			string(c.Owner), c.Budget, c.Cap, c.Flavor, strings.Join(c.Envelopes, ","), countOf(c.MaxConcurrency),
			seen(c.ObservedAt, fmt.Sprint(c.UsedGPUs)), countOf(c.FreeGPUs),
			seen(c.ObservedAt, view.Short(c.SpentGPUHours)), seen(c.ObservedAt, c.left()),
			seen(c.ObservedAt, view.Short(c.PromisedGPUHours)), seen(c.ObservedAt, view.Short(c.HourlyGPUHours)), c.end()))
	}
	return table
}

// seen is the text of a number that has been observed; others are unknown, not nought.
func seen(observed *metav1.Time, text string) string {
	if observed == nil {
		return ""
	}
	return text
}

func countOf(n *int32) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

// left is what is left in GPU-hours, as text; empty when there is no limit.
func (h *hoursUsage) left() string {
	if h.LeftGPUHours == nil {
		return ""
	}
	return view.Short(*h.LeftGPUHours)
}

// end says when GPU-hours run out.
func (h *hoursUsage) end() string {
	if h.LeftGPUHours != nil && strings.Trim(string(*h.LeftGPUHours), "0.") == "" {
		return "spent"
	}
	return view.Timestamp(h.RunsOut)
}

// windowOf prints a window, such as 2030-01-01T00:00:00Z/.. for one that stays open.
func windowOf(start, end *metav1.Time) string {
	if start == nil && end == nil {
		return ""
	}
	edge := func(t *metav1.Time) string {
		if t == nil {
			return ".."
		}
		return t.UTC().Format(time.RFC3339)
	}
	return edge(start) + "/" + edge(end)
}
