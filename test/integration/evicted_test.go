package integration

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ends has a pod of a Run that runs end as its kubelet tells it.
func (s *site) ends(name string, as corev1.PodStatus) (node string) {
	s.t.Helper()
	eventually(s.t, "the kubelet is to say how the pod ended", func() error {
		pod := &corev1.Pod{}
		if err := s.api.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, pod); err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("pod %s is %s: its kubelet would write over what is said", name, pod.Status.Phase)
		}
		node = pod.Spec.NodeName
		pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, as.Reason, as.Message
		pod.Status.Conditions = append(pod.Status.Conditions, as.Conditions...)
		if as.ContainerStatuses != nil {
			pod.Status.ContainerStatuses = as.ContainerStatuses
		}
		return s.api.Status().Update(s.t.Context(), pod)
	})
	return node
}

// disruptedBy is the status of a pod that somebody has ended for the node's sake.
func disruptedBy(who, reason string) corev1.PodStatus {
	return corev1.PodStatus{Reason: reason, Message: "so the kubelet says", Conditions: []corev1.PodCondition{{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: who, LastTransitionTime: metav1.Now()}}}
}
