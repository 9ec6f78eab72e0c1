package workloads

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// BenchmarkForeign runs the workloads of BenchmarkJobtree on pods that no Run has made: each gang is a group by its
// pods' annotations, for which the scheduler makes a Run.
func BenchmarkForeign(b *testing.B) { benchmark(b, createGroup) }

// createGroup creates the pods of one gang, which hold one GPU each, as the template of a Run has them.
func createGroup(ctx context.Context, c clients, template *rqv1.Run, i, pods int, together bool) error {
	run := newRun(template, fmt.Sprintf("group-%d", i), i, pods)
	says := map[string]string{
		rqv1.AnnotationOwner: string(run.Spec.Owner), rqv1.AnnotationGPUType: run.Spec.Resources.GPUType,
		rqv1.AnnotationGroup: run.Name, rqv1.AnnotationGroupSize: strconv.Itoa(pods),
	}
	if together {
		says[rqv1.AnnotationGroupGPUs] = strconv.Itoa(pods)
	}
	for k := range pods {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s-%d", run.Name, k),
			Annotations: maps.Clone(says)}, Spec: *run.Spec.Template.Spec.DeepCopy()}
		pod.Spec.SchedulerName = rqv1.SchedulerName
		if _, err := c.kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating a pod: %w", err)
		}
	}
	return nil
}
