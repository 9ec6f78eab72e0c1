package sim

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// SetReady has a kubelet say whether a pod is ready.
func (c *Cluster) SetReady(uid types.UID, ready bool) {
	pod := c.Pods[uid].DeepCopy()
	c.setReady(pod, ready)
	c.SetPod(pod)
}

// setReady says on a pod whether it is ready, and since when.
func (c *Cluster) setReady(pod *corev1.Pod, ready bool) {
	is := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}
	is.LastTransitionTime = metav1.NewTime(c.Now)
	if ready {
		is.Status = corev1.ConditionTrue
	}
	for i := range pod.Status.Conditions {
		if was := &pod.Status.Conditions[i]; was.Type == is.Type {
			if was.Status != is.Status {
				*was = is
			}
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, is)
}

// StartAgain has the container of a pod die, and its kubelet start it again. It is not ready until that is said.
func (c *Cluster) StartAgain(uid types.UID) {
	pod := c.Pods[uid].DeepCopy()
	status, began := corev1.ContainerStatus{Name: "main"}, pod.CreationTimestamp
	if of := pod.Status.ContainerStatuses; len(of) > 0 {
		status = of[0]
		if last := status.LastTerminationState.Terminated; last != nil {
			began = last.FinishedAt
		}
	}
	status.RestartCount++
	status.LastTerminationState = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1,
		Reason: "Error", StartedAt: began, FinishedAt: metav1.NewTime(c.Now)}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	c.setReady(pod, false)
	c.SetPod(pod)
}
