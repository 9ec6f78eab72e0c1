package controllers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestWhatIsCachedIsLean and all there is of what has not ended.
func TestWhatIsCachedIsLean(t *testing.T) {
	grace := int64(90)
	whole := corev1.PodSpec{NodeName: "n0", TerminationGracePeriodSeconds: &grace,
		Volumes: []corev1.Volume{{Name: "data"}},
		Containers: []corev1.Container{{Name: "train", Command: []string{"python"},
			Env:       []corev1.EnvVar{{Name: "A", Value: "b"}},
			Resources: corev1.ResourceRequirements{Limits: gpus("8")}}}}
	short := *whole.DeepCopy()
	short.Volumes, short.Containers[0].Command, short.Containers[0].Env = nil, nil, nil
	managed := []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	for name, c := range map[string]struct {
		phase corev1.PodPhase
		run   rqv1.RunPhase
		want  corev1.PodSpec
	}{
		"it runs":      {corev1.PodRunning, rqv1.RunRunning, whole},
		"it has ended": {corev1.PodSucceeded, rqv1.RunCompleted, short},
		"it failed":    {corev1.PodFailed, rqv1.RunFailed, short},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", ManagedFields: managed}, Spec: *whole.DeepCopy()}
		pod.Status.Phase = c.phase
		run := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Name: "r", ManagedFields: managed},
			Spec: rqv1.RunSpec{Template: &corev1.PodTemplateSpec{Spec: *whole.DeepCopy()}}}
		run.Status.Phase = c.run
		for range 2 { // what is cached may come again
			for _, o := range []any{pod, run} {
				if same, err := lean(o); same != o || err != nil {
					t.Errorf("%s: %v, %v", name, same, err)
				}
			}
		}
		want, is := []corev1.PodSpec{c.want, c.want}, []corev1.PodSpec{pod.Spec, run.Spec.Template.Spec}
		if diff := cmp.Diff(want, is); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if len(pod.ManagedFields)+len(run.ManagedFields) > 0 {
			t.Errorf("%s: it is cached who wrote which field", name)
		}
	}
	if _, err := lean(cache.DeletedFinalStateUnknown{Key: "ns/p"}); err != nil {
		t.Error(err)
	}
}
