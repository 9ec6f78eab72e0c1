package list

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// runTable shows Runs, with the GPUs that stand by for each, by its UID; nil when these are not known.
func runTable(runs []rqv1.Run, standBy map[types.UID]int32, wide bool, now time.Time) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: session.Columns(
		"Name", "Owner~2", "+Submitter", "+Type", "+GPUs", "+Groups", "+Priority", "Width", "+Pending", "Spares?~3",
		"+Funding", "Phase", "+Ready", "Age~1", "+Start", "+At Risk", "+Maintenance", "Message…")}
	for i := range runs {
		run := &runs[i]
		message := session.LocalTimes(run.Status.Message, now)
		if !wide { // what comes before it has columns of its own there
			message = view.NewsOf(run, now)
		}
		table.Rows = append(table.Rows, session.Row(run,
			run.Name,
			string(run.Spec.Owner),
			run.Spec.Submitter,
			run.Spec.Resources.GPUType,
			fmt.Sprint(run.Spec.Resources.TotalGPUs),
			groupsOf(run),
			view.PriorityOf(run),
			view.WidthOf(run),
			view.PendingOf(run),
			standingBy(run, standBy),
			fundingOf(run),
			view.StandingOf(run),
			view.ReadyOf(run),
			duration.HumanDuration(now.Sub(run.CreationTimestamp.Time)),
			view.StartOf(run, now),
			view.RiskOf(run, now),
			session.LocalTimes(view.MaintenanceOf(run), now),
			message,
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

// standingBy says how many GPUs stand by for a Run of those that are to; empty for a Run without spares, or that has
// ended.
func standingBy(run *rqv1.Run, standBy map[types.UID]int32) string {
	switch {
	case run.Spec.GroupSpares() == 0 || run.Ended():
		return ""
	case standBy == nil:
		return fmt.Sprintf("?/%d", view.SparesWanted(run))
	}
	return fmt.Sprintf("%d/%d", standBy[run.UID], view.SparesWanted(run))
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
