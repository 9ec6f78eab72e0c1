package lifecycle

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// unfinished reports whether a pod has not ended.
func unfinished(pod *corev1.Pod) bool {
	return !rank.Ended(pod)
}

// present reports whether a pod is there and has not been told to go.
func present(pod *corev1.Pod) bool { return pod != nil && pod.DeletionTimestamp == nil }

// active reports whether a pod holds or wants GPUs and has not been told to go.
func active(pod *corev1.Pod) bool { return present(pod) && unfinished(pod) }

// bound reports whether a pod is there and has its node.
func bound(pod *corev1.Pod) bool { return pod != nil && pod.Spec.NodeName != "" }
