package cli

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

func runTable(runs []rqv1.Run, now time.Time) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: columns(
		"Name", "Owner", "+Type", "GPUs", "+Groups", "Allocated", "+Funding", "Phase", "Age", "+Start", "Message")}
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
			timestamp(run.Status.EarliestStart),
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

// timestamp prints an instant to the second, in UTC; nil is empty.
func timestamp(t *metav1.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
