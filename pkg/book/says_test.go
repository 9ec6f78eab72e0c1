package book

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func requiring(values ...string) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: corev1.NodeSelectorOpIn,
				Values: values}}}}}}}}}
}

// What pods would like of nodes does not set them apart, and what they require does, however it is spelled.
func TestWhatSetsPodsApartInWhichNodesTheyMayUse(t *testing.T) {
	likes := &corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1}}}}}}
	if nodesFor(likes) != nodesFor(&corev1.Pod{}) {
		t.Error("a preference sets pods apart")
	}
	if nodesFor(requiring("a b")) == nodesFor(requiring("a", "b")) {
		t.Error("two values are taken for one")
	}
	if nodesFor(requiring("a", "b")) != nodesFor(requiring("a", "b")) {
		t.Error("the same sets pods apart")
	}
}
