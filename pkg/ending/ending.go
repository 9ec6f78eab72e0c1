package ending

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// Ending is how a pod ended.
type Ending struct {
	Cause rqv1.EndCause
	// Sign is the word by which the cause is known: one of Signs, or the container runtime's.
	Sign string
	// Message is what Kubernetes, or the container, says of it; empty when neither does.
	Message string
	// Container is the one that ended first of those that failed, and ExitCode its exit code, 1 to 255. They are empty and
	// 0 when none failed.
	Container string
	ExitCode  int32
	// At is when that was, as the kubelet tells it; zero when it does not.
	At time.Time
}

// Of returns how a pod ended that failed; false for one that has not.
func Of(pod *corev1.Pod) (Ending, bool) {
	if pod.Status.Phase != corev1.PodFailed {
		return Ending{}, false
	}
	e := Ending{}
	first := firstFailed(pod)
	if first != nil {
		t := first.State.Terminated
		e.Container, e.ExitCode, e.At = first.Name, t.ExitCode, t.FinishedAt.Time
	}
	condition := disruption(pod)
	sick, device := Unhealthy(pod)
	switch {
	case condition != nil:
		e.Sign, e.Message = condition.Reason, condition.Message
		e.Cause = known(InCondition, e.Sign, rqv1.CauseNode) // whoever else disrupts pods does it for the node's sake
		e.At = cmp.Or(e.At, condition.LastTransitionTime.Time)
	case pod.Status.Reason != "":
		e.Sign, e.Message = pod.Status.Reason, pod.Status.Message
		e.Cause = known(InStatus, e.Sign, rqv1.CauseProgram)
		if !started(pod) && e.Cause == rqv1.CauseProgram {
			e.Cause = rqv1.CauseNode // the node has turned it away, for whatever reason
		}
	case device:
		e.Cause, e.Sign, e.Message = sick.Cause, sick.Sign, sick.Message
	case first != nil:
		t := first.State.Terminated
		e.Sign, e.Message = t.Reason, strings.TrimSpace(t.Message)
		e.Cause = known(InContainer, e.Sign, rqv1.CauseProgram)
	default:
		e.Cause, e.Message = rqv1.CauseProgram, pod.Status.Message
	}
	return e, true
}

// Evicted returns how a pod ends that has been told to go for its node's sake, before its containers have ended,
// whatever they say of it when they do; false for any other.
func Evicted(pod *corev1.Pod) (Ending, bool) {
	if pod.DeletionTimestamp == nil {
		return Ending{}, false
	}
	return Removed(pod)
}

// Removed returns likewise how a pod ended that is gone, with or without having been told before, or that its node had
// ended, or turned away.
func Removed(pod *corev1.Pod) (Ending, bool) {
	if e, failed := Of(pod); failed && e.Cause == rqv1.CauseNode {
		return e, true
	}
	condition := disruption(pod)
	if condition == nil || known(InCondition, condition.Reason, rqv1.CauseNode) != rqv1.CauseNode {
		return Ending{}, false
	}
	return Ending{Cause: rqv1.CauseNode, Sign: condition.Reason, Message: condition.Message,
		At: condition.LastTransitionTime.Time}, true
}

// disruption returns the condition that says who was about to end a pod; nil when nobody was. A scheduler's notice that
// no deletion has followed was in vain: it says nothing of how the pod ended.
func disruption(pod *corev1.Pod) *corev1.PodCondition {
	at := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		vain := pod.DeletionTimestamp == nil && known(InCondition, c.Reason, rqv1.CauseNode) == rqv1.CauseScheduler
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && !vain
	})
	if at < 0 {
		return nil
	}
	return &pod.Status.Conditions[at]
}

// statuses goes through what is known of a pod's containers, the init containers first. It copies none of it: it is
// asked of every pod of a Run, each time the Run is looked at.
func statuses(pod *corev1.Pod) iter.Seq[*corev1.ContainerStatus] {
	return func(yield func(*corev1.ContainerStatus) bool) {
		for _, of := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
			for i := range of {
				if !yield(&of[i]) {
					return
				}
			}
		}
	}
}

// programs goes likewise through those of a pod's containers whose ends are its program's: not through its sidecars,
// init containers that their kubelet starts again whatever becomes of them, while the others go on.
func programs(pod *corev1.Pod) iter.Seq[*corev1.ContainerStatus] {
	return func(yield func(*corev1.ContainerStatus) bool) {
		for c := range statuses(pod) {
			if !isSidecar(pod, c.Name) && !yield(c) {
				return
			}
		}
	}
}

func isSidecar(pod *corev1.Pod, name string) bool {
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.Name == name {
			return rank.IsSidecar(c)
		}
	}
	return false
}

// started reports whether a container of a pod has ever run.
func started(pod *corev1.Pod) bool {
	for c := range statuses(pod) {
		if c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil ||
			c.RestartCount > 0 {
			return true
		}
	}
	return false
}

// firstFailed returns the container that failed first, the first by order of several; nil when none did.
func firstFailed(pod *corev1.Pod) (first *corev1.ContainerStatus) {
	for c := range programs(pod) {
		t := c.State.Terminated
		if t == nil || t.ExitCode == 0 {
			continue
		}
		if first == nil || t.FinishedAt.Before(&first.State.Terminated.FinishedAt) {
			first = c
		}
	}
	return first
}
