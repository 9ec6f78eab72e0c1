package resize

import (
	"fmt"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// hasWidth returns the width in GPUs that a Run has, or starts with, as far as it desires that.
func hasWidth(run *rqv1.Run) int32 {
	has := run.Spec.Resources.TotalGPUs
	if w := run.Status.Width; w != nil && w.Granted > 0 {
		has = w.Granted
	}
	return min(has, run.Spec.Desired())
}

// newWidth returns the width that a Run is to desire, or says which rule is against it and what would do.
func (r *resize) newWidth(run *rqv1.Run) (int32, error) {
	const field = "spec.malleable.desiredTotalGPUs"
	m, desired := run.Spec.Malleable, run.Spec.Desired()
	refused := func(why string, args ...any) (int32, error) {
		return 0, session.Fail(session.ExitError, "Run %s: %s", session.NameOf(run), fmt.Sprintf(why, args...))
	}
	switch phase := view.PhaseOf(run); {
	case m == nil:
		return refused("spec.malleable is not set, so the Run keeps its %d GPUs; to change that, delete it and submit it "+
			"again with spec.malleable", desired)
	case phase == rqv1.RunCompleted, phase == rqv1.RunFailed:
		return refused("the Run is %s and holds no GPUs", phase)
	}
	to, least, most, step := int64(r.to), int64(m.MinTotalGPUs), int64(m.MaxTotalGPUs), int64(m.StepGPUs)
	switch {
	case r.by > 0 && r.wider:
		to = int64(desired) + int64(r.by)
	case r.by > 0:
		to = int64(hasWidth(run)) - int64(r.by)
	}
	switch over := (to - least) % step; {
	case to < least:
		return refused("%s: %d GPUs are too few; the least is malleable.minTotalGPUs, %d", field, to, least)
	case to > most:
		return refused("%s: %d GPUs are too many; the most is malleable.maxTotalGPUs, %d", field, to, most)
	case over != 0:
		return refused("%s: %d GPUs are not a possible width, which is malleable.minTotalGPUs (%d) plus whole steps of "+
			"malleable.stepGPUs (%d); the nearest are %d and %d",
			field, to, least, step, to-over, to-over+step)
	case r.wider && to < int64(desired):
		return refused("%s: %d is less than the %d GPUs that it wants; use kubectl runs shrink", field, to, desired)
	case !r.wider && to > int64(desired):
		return refused("%s: %d is more than the %d GPUs that it wants; use kubectl runs grow", field, to, desired)
	}
	return int32(to), nil
}
