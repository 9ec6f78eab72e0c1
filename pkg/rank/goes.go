package rank

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// EndsNow is the activeDeadlineSeconds, the least that the API takes, that a running pod is given to have its kubelet
// end it, with its grace period, without deleting it: its object stays, and so does what it has printed.
const EndsNow = 1

// MayRun reports whether containers of a pod may run: a kubelet has taken it and begun one, and has not said that they
// have ended, as it does before it lets a pod go. Those whose images cannot be had are what people delete by force.
func MayRun(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && Taken(pod) && !Ended(pod) && (pod.Status.Phase != corev1.PodPending || begun(pod))
}

// begun reports whether a container of a pod runs, or has.
func begun(pod *corev1.Pod) bool {
	for _, of := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range of {
			if c := &of[i]; c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil {
				return true
			}
		}
	}
	return false
}

// ByForce reports whether a pod has been deleted without any time to end: its object goes at once, and its containers
// have what its kubelet gives them.
func ByForce(pod *corev1.Pod) bool {
	left := pod.DeletionGracePeriodSeconds
	return pod.DeletionTimestamp != nil && left != nil && *left == 0
}

// NeverRuns reports whether a pod was deleted before it had a node: nobody binds it any more, however long finalizers
// keep its object.
func NeverRuns(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil && pod.Spec.NodeName == "" }

// LeastGrace is what a kubelet gives the containers of a pod that is to end without any time.
const LeastGrace = 2 * time.Second

// GoesBy returns by when a pod that has been told to end is to have ended, by deletion or where it is; false for one
// that has not been told.
func GoesBy(pod *corev1.Pod) (time.Time, bool) {
	if at := pod.DeletionTimestamp; at != nil {
		return at.Time, true
	}
	if seconds := pod.Spec.ActiveDeadlineSeconds; seconds == nil || *seconds != EndsNow {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, pod.Annotations[rqv1.AnnotationEndsBy])
	return at, err == nil
}
