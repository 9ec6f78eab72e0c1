package lifecycle

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
)

// grant works out the width that the Run may have: of one that runs, what its status grants and its cuts leave of that; of
// another, what it asks for or is planned at.
func (s *state) grant() {
	s.granted = int32(s.Demand.GPUs())
	if s.Run == nil || s.Run.Status.Phase != rqv1.RunRunning {
		return
	}
	if recorded := s.recorded(); recorded > 0 {
		s.behind, s.granted = recorded != s.granted, recorded
	}
	for i := range s.Cuts {
		if cut := &s.Cuts[i]; s.shrinks(cut) && s.ranBefore(cut.At) {
			s.granted = min(s.granted, *cut.Width)
		}
	}
	s.Demand = s.Demand.At(int(s.granted) / s.Demand.GPUsPerPod)
}

// recorded returns the width that the status grants; 0 when it grants none.
func (s *state) recorded() int32 {
	if s.Run.Status.Width == nil {
		return 0
	}
	return s.Run.Status.Width.Granted
}

// shrinks reports whether a cut makes the Run narrower.
func (s *state) shrinks(cut *book.Cut) bool {
	return cut.Action == rqv1.CutShrink && cut.Width != nil && s.Shape == nil && s.Demand.GPUsPerPod > 0
}

// narrowed reports whether the Run runs and its status says how wide it may be: only then do pods beyond that go.
func (s *state) narrowed() bool {
	return s.Run.Status.Phase == rqv1.RunRunning && s.phase == rqv1.RunRunning && s.recorded() == s.granted
}

// has reports whether the Run has a part at its width.
func (s *state) has(part book.Part) bool { return s.hasAt(s.granted, part) }

// hasAt reports whether the Run would have a part at a width in GPUs.
func (s *state) hasAt(gpus int32, part book.Part) bool {
	d := s.Demand.At(int(gpus) / s.Demand.GPUsPerPod)
	if part.Spare {
		return part.Index < d.Spares()
	}
	return part.Index < d.Pods()
}

// bound says how wide the Run is, in a word and in a sentence. That it was shrunk is said until its width changes again or a
// spare is swapped in, and that one was, until something else happens.
func (s *state) bound() (reason, message string) {
	started := meta.FindStatusCondition(s.Run.Status.Conditions, rqv1.ConditionStarted)
	shrunk := started != nil && started.Reason == reasonShrink && s.Run.Status.Phase == rqv1.RunRunning
	shrinks, swaps := s.recorded() > s.granted, slices.ContainsFunc(s.pods, func(pod *corev1.Pod) bool { return pod != nil && s.swapping(pod) })
	switch missing := s.missing(); {
	case !shrinks && missing > 0 && (swaps || !shrunk):
		return "Replacing", fmt.Sprintf("replacing %d of %d pods", missing, len(s.pods))
	case shrinks, shrunk:
		return reasonShrink, fmt.Sprintf("shrunk to %d GPUs", s.granted)
	case s.swapped() != "":
		return reasonSwapped, s.swapped()
	}
	return "Started", fmt.Sprintf("bound %d GPUs", s.granted)
}
