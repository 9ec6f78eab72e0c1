package lifecycle

import (
	"strings"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// unended begins what a Run's message says of pods that are to end and that the API server does not let go. It comes
// after all else.
const unended = "; the API server refuses to delete pods of it, which hold their GPUs until they are gone: "

// withUnended adds to a message why pods are still there that were to end.
func (f *facts) withUnended(message string) string {
	if f.Unended == "" {
		return message
	}
	return message + unended + f.Unended
}

// withoutUnended returns a Run as it would be read if its pods had been let go: that they are not is worked out anew,
// whatever of its messages is said again.
func withoutUnended(run *rqv1.Run) *rqv1.Run {
	if !strings.Contains(run.Status.Message, unended) {
		return run
	}
	run = run.DeepCopy()
	run.Status.Message, _, _ = strings.Cut(run.Status.Message, unended)
	for i := range run.Status.Conditions {
		c := &run.Status.Conditions[i]
		c.Message, _, _ = strings.Cut(c.Message, unended)
	}
	return run
}
