package lifecycle

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// unboundInTime is the reason of a gang that starts again since it was not bound in time.
const unboundInTime = "DeadlineExceeded"

// notMadeAgain is what is added to that while others have not made its pods anew.
const notMadeAgain = "; not all of its pods have been created again"

// storyOfUnbound says why a gang starts again that was bound in part: by what the scheduler says of the first pod that
// was not, if it came as far as that.
func storyOfUnbound(s *situation) string {
	why, said := "", saidUnbound(s.facts.Run)
	if said != "" {
		return said // the pod may be gone that told why
	}
	for _, pod := range s.roster.all() {
		if why == "" && active(pod) && !bound(pod) {
			why = whyUnbound(pod)
		}
	}
	return fmt.Sprintf("not every pod could be bound within %s%s; the Run starts again", s.facts.GangDeadline, why)
}

// whyUnbound is what the scheduler says of a pod whose binding failed, to be added; empty where none has.
func whyUnbound(pod *corev1.Pod) string {
	is := scheduledOf(pod)
	if is.Reason != corev1.PodReasonSchedulerError {
		return ""
	}
	return ": " + Shortened(is.Message, longestRefusal)
}

// longestRefusal is how many bytes of what the API server says of a pod are told of its Run.
const longestRefusal = 900

// saidUnbound returns what a Run says of an attempt in which not every pod could be bound; empty where it says
// something else by now. It does until its pods are there again.
func saidUnbound(run *rqv1.Run) string {
	is := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionStarted)
	if is == nil || is.Reason != unboundInTime || is.ObservedGeneration != run.Generation || run.Spec.TheirsComeLate() {
		return ""
	}
	return strings.TrimSuffix(run.Status.Message, notMadeAgain)
}
