package story

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Ending is how the containers of a pod end, as its kubelet tells it.
type Ending func(*corev1.Pod, metav1.Time)

// Well is how a program ends that has done its work.
func Well(pod *corev1.Pod, at metav1.Time) {
	pod.Status.Phase = corev1.PodSucceeded
	terminated(pod, corev1.ContainerStateTerminated{Reason: "Completed", FinishedAt: at})
}

// Exits is how a program ends with an exit code and a last word.
func Exits(code int32, word string) Ending {
	return func(pod *corev1.Pod, at metav1.Time) {
		pod.Status.Phase = corev1.PodFailed
		terminated(pod, corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", Message: word, FinishedAt: at})
	}
}

// EndedFor is how a node ends a pod, or turns it away, for a reason.
func EndedFor(reason, message string) Ending {
	return func(pod *corev1.Pod, _ metav1.Time) {
		pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, reason, message
	}
}

// DisruptedBy is how somebody ends a pod for its node's sake.
func DisruptedBy(who, reason string) Ending {
	return func(pod *corev1.Pod, at metav1.Time) {
		EndedFor(reason, "so the kubelet says")(pod, at)
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget,
			Status: corev1.ConditionTrue, Reason: who, LastTransitionTime: at})
	}
}

// StartsAgain is how the kubelet starts a program again in place, for the nth time.
func StartsAgain(times int32) Ending {
	return func(pod *corev1.Pod, at metav1.Time) {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name, RestartCount: times,
			Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1,
				Reason: "Error", StartedAt: at, FinishedAt: at}}}}
	}
}

// Health is what a kubelet says of a device of a pod, which goes on.
func Health(device string, is corev1.ResourceHealthStatus) Ending {
	return func(pod *corev1.Pod, at metav1.Time) {
		if len(pod.Status.ContainerStatuses) == 0 {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}}}
		}
		pod.Status.ContainerStatuses[0].Name = pod.Spec.Containers[0].Name
		pod.Status.ContainerStatuses[0].AllocatedResourcesStatus = []corev1.ResourceStatus{{Name: gpuResource,
			Resources: []corev1.ResourceHealth{{ResourceID: corev1.ResourceID(device), Health: is}}}}
	}
}

func terminated(pod *corev1.Pod, state corev1.ContainerStateTerminated) {
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name,
		State: corev1.ContainerState{Terminated: &state}}}
}
