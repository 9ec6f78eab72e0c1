package controllers

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
)

// giveNotice tells a pod, by its condition DisruptionTarget, that it is about to end, and why. A pod that is gone, or that
// another has taken the name of, needs no notice.
func (c *Controllers) giveNotice(ctx context.Context, pod *corev1.Pod, notice *lifecycle.Notice) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status": map[string]any{"conditions": []corev1.PodCondition{{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: string(notice.Reason), Message: notice.Message,
			LastTransitionTime: metav1.NewTime(c.clock.Now()),
		}}},
	})
	if err != nil {
		return fmt.Errorf("notice for pod %s: %w", pod.Name, err)
	}
	_, err = c.kube.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return ignore(err, apierrors.IsNotFound, apierrors.IsConflict)
}
