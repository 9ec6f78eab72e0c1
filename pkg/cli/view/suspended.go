package view

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Suspended is how a Run stands that is held back by its own word.
const Suspended = "Suspended"

// StandingOf is where a Run is in a word: its phase, or that it is suspended, or has run for its maxDuration.
func StandingOf(run *rqv1.Run) string {
	finished := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionFinished)
	switch phase := PhaseOf(run); {
	case run.Spec.Suspend && phase == rqv1.RunPending:
		return Suspended
	case phase == rqv1.RunFailed && finished != nil && finished.Reason == rqv1.ReasonTimedOut:
		return rqv1.ReasonTimedOut
	default:
		return string(phase)
	}
}

// ReadyOf is how many ranks of a Run that runs are ready; empty for any other.
func ReadyOf(run *rqv1.Run) string {
	if PhaseOf(run) != rqv1.RunRunning {
		return ""
	}
	return fmt.Sprint(run.Status.Ready)
}

// ForecastFacts says what a suspended Run could expect; none where nothing is known.
func ForecastFacts(f *rqv1.RunForecast, now time.Time) []Fact {
	if f == nil {
		return nil
	}
	start, deficit := "it would have no date", ""
	var remedies []string
	switch {
	case f.GPUs > 0:
		start = fmt.Sprintf("it would start at once, with %d GPUs", f.GPUs)
	case f.EarliestStart != nil:
		start = fmt.Sprintf("it would start at %s (%s)", Clock(*f.EarliestStart, now), Countdown(*f.EarliestStart, now))
	}
	if e := f.Expected; e != nil {
		start = fmt.Sprintf("%s, %s", start, e.Confidence)
		remedies = e.Remedies
		deficit = fmt.Sprintf("%d GPUs", e.DeficitGPUs)
		if e.Scope != "" {
			deficit += " in " + e.Scope
		}
	}
	return []Fact{
		{"if resumed", Only(fmt.Sprintf("%s; nothing is promised (as of %s)", start, Clock(f.At, now)))},
		{"would wait", Only(f.Message)},
		{"deficit", Only(deficit)},
		{"remedies", remedies},
		{"note", f.Remarks},
		{"not asked", f.NotAsked},
	}
}
