package restart

import (
	"math"
	"strconv"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

const (
	// Together is how long an incident lasts at least: a collective operation that waits for a dead rank may take so long
	// to give up, which takes the other ranks with it.
	Together = 10 * time.Minute
	// Settling is how long after the first death a rank that was started again may die of it once more, as long as not all
	// ranks have been ready.
	Settling = time.Minute
	// Gathering is how long after a rank has died again it is seen whether all others die with it.
	Gathering = 3 * time.Second
	// atOnce is how far apart deaths may be, by whole seconds of several clocks, of which nobody knows which came first.
	atOnce = 2 * time.Second
	// Pause is the least time from when the pod of a rank was made to when the next is, of two in one incident.
	Pause = 10 * time.Second
	// quietByDefault is how long it is quiet between incidents that count by themselves, where no checkpoint is declared.
	quietByDefault = 10 * time.Minute
	// leastQuiet is how long it is quiet at least, however short a checkpoint interval is declared: else no incident would
	// count with another.
	leastQuiet = time.Minute
	// mostNodes is on how many nodes a rank may die first: then it is not for the nodes.
	mostNodes = 3
)

// Rules are what a Run says of its restarts.
type Rules struct {
	// Limit is how many incidents the Run survives without quiet between them: 0 to 100, or no limit for Theirs.
	Limit int32
	// Theirs says that somebody else makes the pods, and says how often: the Run never fails by its restarts (R42).
	Theirs bool
	// Quiet is how long all ranks have to be ready for an earlier incident not to count any more.
	Quiet time.Duration
	codes map[string]rqv1.RestartAction
}

// RulesOf returns the rules of a Run: what it does not say follows from whether it declares a checkpoint.
func RulesOf(spec *rqv1.RunSpec) Rules {
	r := Rules{Quiet: quietByDefault}
	if spec.Theirs() {
		r.Limit, r.Theirs = math.MaxInt32, true
		return r
	}
	if spec.Opportunistic || spec.Runtime == nil {
		return r
	}
	if every := spec.Runtime.Checkpoint; every != nil {
		r.Limit, r.Quiet = rqv1.DefaultRestarts, max(every.Duration, leastQuiet)
	}
	if own := spec.Runtime.Restarts; own != nil {
		r.codes = own.OnExitCodes
		if own.Limit != nil {
			r.Limit = *own.Limit
		}
	}
	return r
}

// On returns what is done about a death by its exit code alone.
func (r Rules) On(exitCode int32) rqv1.RestartAction {
	if action, ok := r.codes[strconv.Itoa(int(exitCode))]; ok {
		return action
	}
	return rqv1.ActionRestart
}
