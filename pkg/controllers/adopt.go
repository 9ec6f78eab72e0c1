package controllers

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
)

// AdoptPods gives pods ranks, unless they are gone or others have their names. One that has changed since it was seen
// may have another rank by now: it is looked at again.
func (p podWriter) AdoptPods(ctx context.Context, adopted []lifecycle.Adoption) error {
	return inParallel(len(adopted), func(i int) error {
		a := &adopted[i]
		return p.unseen.once(adopting(a), func() error {
			return p.relabel(ctx, a.Pod, a.Pod.ResourceVersion, anyOf(a.Labels), anyOf(a.Annotations))
		})
	})
}

// rankLabels are the labels by which a pod that others have made has a rank.
var rankLabels = []string{rqv1.LabelRun, rqv1.LabelRunUID, rqv1.LabelIndex, rqv1.LabelGroupIndex, rqv1.LabelCohort,
	rqv1.LabelRole, rqv1.LabelSource}

// ReleasePods takes their ranks from pods, unless they are gone or others have their names.
func (p podWriter) ReleasePods(ctx context.Context, released []*corev1.Pod) error {
	none := map[string]any{}
	for _, key := range rankLabels {
		none[key] = nil
	}
	return inParallel(len(released), func(i int) error {
		err := p.relabel(ctx, released[i], "", none, map[string]any{rqv1.AnnotationReplaces: nil})
		return ignore(err, apierrors.IsConflict)
	})
}

// relabel changes labels and annotations of a pod as it is in some version, and in any if that is empty; nil takes one
// away.
func (p podWriter) relabel(ctx context.Context, pod *corev1.Pod, version string, labels,
	annotations map[string]any) error {
	metadata := map[string]any{"uid": pod.UID, "labels": labels}
	if version != "" {
		metadata["resourceVersion"] = version
	}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return fmt.Errorf("labels of pod %s: %w", pod.Name, err)
	}
	_, err = p.kube.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return ignore(err, apierrors.IsNotFound)
}

func anyOf(all map[string]string) map[string]any {
	out := make(map[string]any, len(all))
	for key, value := range all {
		out[key] = value
	}
	return out
}
