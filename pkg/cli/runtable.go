package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// runTable shows Runs, with the GPUs that stand by for each, by its UID; nil when these are not known.
func runTable(runs []rqv1.Run, standBy map[types.UID]int32, now time.Time) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: columns(
		"Name", "Owner", "+Type", "+GPUs", "+Groups", "Width", "+Pending", "Spares", "+Funding", "Phase", "Age", "+Start", "+At Risk", "Message")}
	for i := range runs {
		run := &runs[i]
		table.Rows = append(table.Rows, row(run,
			run.Name,
			string(run.Spec.Owner),
			run.Spec.Resources.GPUType,
			fmt.Sprint(run.Spec.Resources.TotalGPUs),
			groupsOf(run),
			widthOf(run),
			pendingOf(run),
			standingBy(run, standBy),
			fundingOf(run),
			string(run.Status.Phase),
			duration.HumanDuration(now.Sub(run.CreationTimestamp.Time)),
			startOf(run, now),
			riskOf(run, now),
			run.Status.Message,
		))
	}
	return table
}

// groupsOf says into how many groups of which size a Run is divided, such as 4x32.
func groupsOf(run *rqv1.Run) string {
	if run.Spec.Locality == nil || run.Spec.Locality.GroupGPUs == nil || *run.Spec.Locality.GroupGPUs <= 0 {
		return ""
	}
	size := *run.Spec.Locality.GroupGPUs
	return fmt.Sprintf("%dx%d", run.Spec.Resources.TotalGPUs/size, size)
}

// widthOf is what a Run has of what it tends to, in GPUs, such as 96/160.
func widthOf(run *rqv1.Run) string {
	if w := run.Status.Width; w != nil {
		return fmt.Sprintf("%d/%d", w.Allocated, w.Desired)
	}
	return fmt.Sprintf("0/%d", run.Spec.Resources.TotalGPUs)
}

func pendingOf(run *rqv1.Run) string {
	if run.Status.Width == nil {
		return ""
	}
	return run.Status.Width.Pending
}

// sparesWanted is how many GPUs are to stand by for a Run at the width that it has, or starts with.
func sparesWanted(run *rqv1.Run) int32 {
	width := run.Spec.Resources.TotalGPUs
	if w := run.Status.Width; w != nil && w.Allocated > 0 {
		width = w.Allocated
	}
	groups := int32(1)
	if run.Spec.Locality != nil && run.Spec.Locality.GroupGPUs != nil && *run.Spec.Locality.GroupGPUs > 0 {
		groups = width / *run.Spec.Locality.GroupGPUs
	}
	return groups * run.Spec.GroupSpares()
}

// standingBy says how many GPUs stand by for a Run of those that are to; empty for a Run without spares, or that has ended.
func standingBy(run *rqv1.Run, standBy map[types.UID]int32) string {
	switch {
	case run.Spec.GroupSpares() == 0 || run.Ended():
		return ""
	case standBy == nil:
		return fmt.Sprintf("?/%d", sparesWanted(run))
	}
	return fmt.Sprintf("%d/%d", standBy[run.UID], sparesWanted(run))
}

// fundingOf says who pays for what a Run holds: its owner, and others by name.
func fundingOf(run *rqv1.Run) string {
	funding := run.Status.Funding
	if funding == nil {
		return ""
	}
	parts := []string{fmt.Sprintf("%d own", funding.OwnedGPUs)}
	for _, sponsor := range funding.Sponsors {
		parts = append(parts, fmt.Sprintf("%d %s (%s)", sponsor.GPUs, sponsor.Owner, sponsor.Relation))
	}
	return strings.Join(parts, " + ")
}

// startOf is when a Run that waits is expected to start; empty when it does not wait or has no date.
func startOf(run *rqv1.Run, now time.Time) string {
	if w := waitOf(run, now); w != nil && w.EarliestStart != nil {
		return fmt.Sprintf("%s (%s)", at(*w.EarliestStart), countdown(*w.EarliestStart, now))
	}
	return ""
}

// riskOf is the first of the greatest risks that a Run has of being cut; empty when it has none.
func riskOf(run *rqv1.Run, now time.Time) string {
	risks := risksOf(run, now)
	if len(risks) == 0 {
		return ""
	}
	worst := slices.MinFunc(risks, func(a, b risk) int {
		return cmp.Or(-chance(a.Probability).Cmp(chance(b.Probability)), a.At.Compare(b.At.Time))
	})
	return fmt.Sprintf("%s at %s (%s)", percent(worst.Probability), at(worst.At), countdown(worst.At, now))
}

// timestamp prints an instant to the second, in UTC; nil is empty.
func timestamp(t *metav1.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
