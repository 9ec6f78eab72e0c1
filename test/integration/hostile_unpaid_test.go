package integration

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// attemptsWithoutPayer are for GPUs that nobody would pay for.
func attemptsWithoutPayer() []attempt {
	plain := func(name string) how {
		return creates("{apiVersion: v1, kind: Pod, metadata: {name: " + name +
			", namespace: $NS}, spec: {schedulerName: jobtree, containers: [{name: a, image: b, resources: {limits: " +
			"{nvidia.com/gpu: 8}}}]}}")
	}
	return []attempt{
		{by: "tenant", try: "a pod for jobtree that no Run made", how: plain("free"),
			harmless: "it stays Pending, and is told what to do", after: unpaidWaits("free")},
		{by: "tenant", try: "such a pod beside a spare, whose GPUs look free",
			how: all(specs("{resources: {totalGPUs: 4, gpusPerPod: 4}, sparesPerGroup: 4}"), running("evil"),
				plain("free")),
			harmless: "it stays Pending, and is told what to do", after: unpaidWaits("free")},
	}
}

// unpaidWaits is an error until a pod is told that it is not bound, and why.
func unpaidWaits(name string) func(h *hostile) error {
	return podIs(name, func(pod *corev1.Pod) error {
		if pod.Spec.NodeName != "" {
			return errors.New("it is bound to " + pod.Spec.NodeName)
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse &&
				strings.Contains(c.Message, rqv1.AnnotationOwner) {
				return nil
			}
		}
		return fmt.Errorf("it is told nothing: %v", pod.Status.Conditions)
	})
}
