package watch

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// outcome says whether the watch is over, and whether the named Runs ended as awaited.
func (w *runWatch) outcome() (over bool, err error) {
	if len(w.names) == 0 {
		return false, nil
	}
	waiting := false
	var astray []string
	for _, name := range w.names {
		run := w.runs[types.NamespacedName{Namespace: w.namespace, Name: name}]
		last := w.last[name]
		if last != nil && last.Ended() { // its time was over, and what it had come to stands
			run, last = last, nil
		}
		switch {
		case last != nil:
			astray = append(astray, fmt.Sprintf("Run %s was deleted", w.Called(name)))
		case run == nil || !reached(w.phase, view.PhaseOf(run)) && !run.Ended():
			waiting = true
		case !reached(w.phase, view.PhaseOf(run)):
			astray = append(astray, fmt.Sprintf("Run %s is %s: %s", w.Called(name), run.Status.Phase, run.Status.Message))
		}
	}
	switch {
	case len(astray) > 0 && (w.phase != "" || !waiting):
		return true, session.Fail(session.ExitNotReached, "%s", strings.Join(astray, "; "))
	case waiting:
		return false, nil
	}
	return true, nil
}

// reached is true when a Run in phase is, or has been, in the awaited phase. Awaiting nothing is awaiting completion.
func reached(awaited, phase rqv1.RunPhase) bool {
	switch awaited {
	case rqv1.RunPending:
		return true
	case rqv1.RunRunning:
		return phase == rqv1.RunRunning || phase == rqv1.RunCompleted
	case "":
		return phase == rqv1.RunCompleted
	}
	return phase == awaited
}
