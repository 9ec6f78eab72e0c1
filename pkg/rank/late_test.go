package rank_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// TestStartsBy: the deadline of a gang of which some pods are made once others are ready counts from when these are.
func TestStartsBy(t *testing.T) {
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	after := func(minutes int) time.Time { return began.Add(time.Duration(minutes) * time.Minute) }
	pod := func(node string, change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(began)},
			Spec: corev1.PodSpec{NodeName: node}}
		if change != nil {
			change(p)
		}
		return p
	}
	ready := func(minutes int) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue,
				LastTransitionTime: metav1.NewTime(after(minutes))}}
		}
	}
	made := func(minutes int) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(after(minutes)) }
	}
	done := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	late := rqv1.RunSpec{Source: rqv1.SourcePods, Pods: &rqv1.RunPods{Late: true}}
	for name, c := range map[string]struct {
		spec  rqv1.RunSpec
		ranks []*corev1.Pod
		now   int
		want  int
	}{
		"all come at once":             {rqv1.RunSpec{}, []*corev1.Pod{pod("n", nil)}, 7, 2},
		"one begins":                   {late, []*corev1.Pod{pod("n", nil), nil}, 7, 9},
		"it is ready":                  {late, []*corev1.Pod{pod("n", ready(5)), nil}, 7, 7},
		"one is, and one begins":       {late, []*corev1.Pod{pod("n", ready(5)), pod("n", nil), nil}, 7, 9},
		"the next is made":             {late, []*corev1.Pod{pod("n", ready(5)), pod("", made(6))}, 7, 8},
		"the next has no place":        {late, []*corev1.Pod{pod("n", nil), pod("", made(6)), nil}, 12, 8},
		"it has completed":             {late, []*corev1.Pod{pod("n", done), nil}, 7, 2},
		"it is never ready":            {late, []*corev1.Pod{pod("n", nil), nil}, 40, 20},
		"they are made without an end": {late, []*corev1.Pod{pod("n", ready(1)), pod("", made(39))}, 40, 20},
	} {
		got := rank.StartsBy(&c.spec, began, c.ranks, 2*time.Minute, after(c.now))
		if want := after(c.want); !got.Equal(want) {
			t.Errorf("%s: by %s, want %s", name, got.Format(time.TimeOnly), want.Format(time.TimeOnly))
		}
	}
}
