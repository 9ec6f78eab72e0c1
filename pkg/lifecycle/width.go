package lifecycle

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// grant works out the width that the Run may have: of one that runs, what its status grants, as far as the Run desires it
// (R24) and its cuts leave it; of another, what it asks for or is planned at.
func (s *state) grant() {
	s.planned = int32(s.Demand.GPUs())
	s.granted = s.planned
	if s.opportunistic() || s.Run == nil || s.Run.Status.Phase != rqv1.RunRunning {
		return
	}
	if recorded := s.recorded(); recorded > 0 {
		s.granted = recorded
	}
	s.granted = min(s.granted, width(&s.Run.Spec).Desired, s.cutTo())
	s.growing = s.growth()
	s.Demand = s.Demand.At(int(s.widest()) / s.Demand.GPUsPerPod)
}

// cutTo returns the width that the Run's cuts leave it.
func (s *state) cutTo() int32 {
	left := int32(math.MaxInt32)
	for i := range s.Cuts {
		if cut := &s.Cuts[i]; s.shrinks(cut) && s.ranBefore(cut.At) {
			left = min(left, *cut.Width)
		}
	}
	return left
}

// recorded returns the width that the status grants; 0 when it grants none.
func (s *state) recorded() int32 {
	if s.Run.Status.Width == nil {
		return 0
	}
	return s.Run.Status.Width.Granted
}

// shrinks reports whether a cut makes the Run narrower.
func (s *state) shrinks(cut *rank.Cut) bool {
	return cut.Action == rqv1.CutShrink && cut.Width != nil && s.Shape == nil && s.Demand.GPUsPerPod > 0
}

// narrowed reports whether the Run runs and its status says how wide it may be: only then do pods beyond that go.
func (s *state) narrowed() bool {
	return s.Run.Status.Phase == rqv1.RunRunning && s.phase == rqv1.RunRunning && s.recorded() == s.granted && s.recordedGrowth() == s.growing
}

// has reports whether the Run has a part at its width, or grows by it.
func (s *state) has(part rank.Part) bool { return s.hasAt(s.widest(), part) }

// hasAt reports whether the Run would have a part at a width in GPUs.
func (s *state) hasAt(gpus int32, part rank.Part) bool {
	return s.Demand.At(int(gpus) / s.Demand.GPUsPerPod).Has(part)
}

// bound says how wide the Run is, in a word and in a sentence. That it was shrunk or grew is said until its width changes
// again or a pod is replaced, and that a spare was swapped in, until something else happens.
func (s *state) bound() (reason, message string) {
	started := meta.FindStatusCondition(s.Run.Status.Conditions, rqv1.ConditionStarted)
	said := ""
	if started != nil && s.Run.Status.Phase == rqv1.RunRunning {
		said = started.Reason
	}
	shrinks, grew := s.recorded() > s.granted, s.recorded() > 0 && s.recorded() < s.granted
	swaps := slices.ContainsFunc(s.core(), func(pod *corev1.Pod) bool { return pod != nil && s.swapping(pod) })
	switch missing := s.missing(); {
	case !shrinks && !grew && missing > 0 && (swaps || said != reasonShrink):
		return "Replacing", fmt.Sprintf("replacing %d of %d pods", missing, len(s.core()))
	case shrinks, said == reasonShrink && !grew:
		return reasonShrink, fmt.Sprintf("shrunk to %d GPUs", s.granted)
	case grew, said == reasonGrow:
		return reasonGrow, fmt.Sprintf("grew to %d GPUs", s.granted)
	case s.swapped() != "":
		return reasonSwapped, s.swapped()
	}
	return "Started", fmt.Sprintf("bound %d GPUs", s.granted)
}
