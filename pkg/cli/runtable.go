package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

func runTable(runs []rqv1.Run, now time.Time) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: columns(
		"Name", "Owner", "+Type", "GPUs", "+Groups", "Allocated", "+Funding", "Phase", "Age", "+Start", "+At Risk", "Message")}
	for i := range runs {
		run := &runs[i]
		table.Rows = append(table.Rows, row(run,
			run.Name,
			string(run.Spec.Owner),
			run.Spec.Resources.GPUType,
			fmt.Sprint(run.Spec.Resources.TotalGPUs),
			groupsOf(run),
			fmt.Sprint(allocated(run)),
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

func allocated(run *rqv1.Run) int32 {
	if run.Status.Width == nil {
		return 0
	}
	return run.Status.Width.Allocated
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
