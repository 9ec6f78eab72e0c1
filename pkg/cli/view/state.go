package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/risk"
)

// NotLooked is said of a Run whose status is not about its present spec.
const NotLooked = "The scheduler has not processed this version of the Run yet. If that lasts, check that " +
	"jobtree-scheduler is running."

// Waiting is what a Run waits for.
type Waiting struct {
	Reason           string       `json:"reason,omitempty"`
	Message          string       `json:"message,omitempty"`
	Reservation      string       `json:"reservation,omitempty"`
	EarliestStart    *metav1.Time `json:"earliestStart,omitempty"`
	CountdownSeconds *int64       `json:"countdownSeconds,omitempty"`
	// Queue is the Run's place in line, if it has no date.
	Queue *rqv1.RunQueue `json:"queue,omitempty"`
	// Refusal is the same as data, as the scheduler has published it.
	Refusal *rqv1.RunRefusal `json:"refusal,omitempty"`
}

// LookedAt is true once the scheduler has looked at the Run as it is now.
func LookedAt(run *rqv1.Run) bool {
	return run.Status.Phase != "" && run.Status.ObservedGeneration >= run.Generation
}

// WaitOf is nil for a Run that does not wait to start.
func WaitOf(run *rqv1.Run, now time.Time) *Waiting {
	if PhaseOf(run) != rqv1.RunPending {
		return nil
	}
	w := &Waiting{Reservation: run.Status.PendingReservation, EarliestStart: run.Status.EarliestStart,
		Message: run.Status.Message, Queue: run.Status.Queue, Refusal: run.Status.Refusal}
	if w.EarliestStart != nil {
		w.CountdownSeconds = CountdownSeconds(*w.EarliestStart, now)
	}
	if started := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionStarted); started != nil {
		w.Reason, w.Message = started.Reason, started.Message
	}
	return w
}

// Phases of a Run, in the order of its life.
var Phases = []string{string(rqv1.RunPending), string(rqv1.RunRunning), string(rqv1.RunCompleted),
	string(rqv1.RunFailed)}

// ParsePhases accepts phases in any case.
func ParsePhases(names []string) ([]rqv1.RunPhase, error) {
	var parsed []rqv1.RunPhase
	for _, name := range names {
		i := slices.IndexFunc(Phases, func(phase string) bool { return strings.EqualFold(phase, name) })
		if i < 0 {
			return nil, session.Fail(session.ExitUsage, "%q is not a phase of a Run; choose from %s", name,
				strings.Join(Phases, ", "))
		}
		parsed = append(parsed, rqv1.RunPhase(Phases[i]))
	}
	return parsed, nil
}

// PhaseOf is the Run's phase; a Run without one is Pending.
func PhaseOf(run *rqv1.Run) rqv1.RunPhase {
	if run.Status.Phase == "" {
		return rqv1.RunPending
	}
	return run.Status.Phase
}

// WidthOf is what a Run has of what it tends to, in GPUs, such as 96/160.
func WidthOf(run *rqv1.Run) string {
	if w := run.Status.Width; w != nil {
		return fmt.Sprintf("%d/%d", w.Allocated, w.Desired)
	}
	return fmt.Sprintf("0/%d", run.Spec.Resources.TotalGPUs)
}

// PendingOf is the change of width that is under way.
func PendingOf(run *rqv1.Run) string {
	if run.Status.Width == nil {
		return ""
	}
	return run.Status.Width.Pending
}

// SparesWanted is how many GPUs are to stand by for a Run at the width that it has, or starts with.
func SparesWanted(run *rqv1.Run) int32 {
	width := run.Spec.Resources.TotalGPUs
	if w := run.Status.Width; w != nil && w.Allocated > 0 {
		width = w.Allocated
	}
	groups := int32(1)
	if run.Spec.Locality != nil && run.Spec.Locality.GroupGPUs != nil && *run.Spec.Locality.GroupGPUs > 0 {
		groups = width / *run.Spec.Locality.GroupGPUs
	}
	return groups * run.GroupSpares()
}

// StartOf is when a Run that waits is expected to start, or its place in line; empty when it does not wait or has
// neither.
func StartOf(run *rqv1.Run, now time.Time) string {
	w := WaitOf(run, now)
	switch {
	case w == nil:
		return ""
	case w.EarliestStart != nil:
		return fmt.Sprintf("%s (%s)", Clock(*w.EarliestStart, now), Countdown(*w.EarliestStart, now))
	case w.Queue != nil:
		return behind(w.Queue)
	}
	return ""
}

// behind says after how many a Run comes; empty for one that is the first.
func behind(q *rqv1.RunQueue) string {
	if q.Ahead == 0 {
		return ""
	}
	return "after " + Counted(int(q.Ahead), "other Run")
}

// PlaceInLine says where in line a Run of a GPU type stands that has no date, and when that was so; empty when that is
// not known.
func PlaceInLine(q *rqv1.RunQueue, gpuType string, now time.Time) string {
	if q == nil {
		return ""
	}
	return fmt.Sprintf("%s, of %s that wait%s for %s (at %s)", cmp.Or(behind(q), "first"), Counted(int(q.Of), "Run"),
		map[bool]string{true: "s"}[q.Of == 1], gpuType, Clock(q.At, now))
}

// RiskOf is the gravest of the risks that a Run's status lists, and how many more it has; empty when it has none.
func RiskOf(run *rqv1.Run, now time.Time) string {
	worst, more := worstRisk(run)
	if worst == nil {
		return ""
	}
	return fmt.Sprintf("%s at %s (%s)%s", risk.Brief(worst), Clock(worst.At, now), Countdown(worst.At, now), more)
}

// worstRisk is the gravest of the risks that a Run's status lists, nil when there is none, and says how many more there
// are.
func worstRisk(run *rqv1.Run) (worst *rqv1.RunRisk, more string) {
	for i := range run.Status.AtRisk {
		if r := &run.Status.AtRisk[i]; worst == nil || risk.Compare(r, worst) < 0 {
			worst = r
		}
	}
	if n := len(run.Status.AtRisk) - 1 + MoreRisks(run); worst != nil && n > 0 {
		more = ", and " + Counted(n, "more risk")
	}
	return worst, more
}

// NewsOf is what a reader of a list is to know of a Run first: the risk that it runs, or when it starts; and then its
// message.
func NewsOf(run *rqv1.Run, now time.Time) string {
	news := ""
	if worst, more := worstRisk(run); worst != nil {
		news = fmt.Sprintf("%s at %s%s", risk.Brief(worst), Clock(worst.At, now), more)
	} else if w := WaitOf(run, now); w != nil && w.EarliestStart != nil && w.EarliestStart.After(now) {
		news = "starts in " + duration.HumanDuration(w.EarliestStart.Sub(now))
	}
	if at := MaintenanceOf(run); news == "" && at != "" {
		news = at
	}
	message := run.Status.Message
	if w := run.Status.Width; w != nil && message == fmt.Sprintf("bound %d GPUs", w.Allocated) {
		message = "" // its width says so
	}
	if news != "" && message != "" {
		news += "; "
	}
	return session.LocalTimes(news+message, now)
}

// Paint pads a phase and, on a terminal, colours it.
func Paint(phase string, colours bool) string {
	padded := fmt.Sprintf("%-9s", phase)
	colour := map[string]string{"Pending": "33", Suspended: "33", "Running": "32", "Completed": "36",
		"Failed": "31", rqv1.ReasonTimedOut: "31"}[phase]
	if !colours || colour == "" {
		return padded
	}
	return "\x1b[" + colour + "m" + padded + "\x1b[0m"
}
