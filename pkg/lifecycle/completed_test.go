package lifecycle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestWhoCompletedBeforeBeingToldToGo: the Lease of a pod of others says that it has completed although it is deleted
// since, and not where it ended well because it was told to go, as pods do whose programs heed that.
func TestWhoCompletedBeforeBeingToldToGo(t *testing.T) {
	at := func(after time.Duration) metav1.Time { return metav1.NewTime(noon.Add(after)) }
	for name, c := range map[string]struct {
		ended time.Duration
		told  time.Duration
		grace int64
		own   bool // the Run makes its pods
		seen  string
		gone  bool
		want  rqv1.ClosureReason
	}{
		"done before, told with time":       {ended: -10 * time.Second, told: -5 * time.Second, grace: 30, want: "Completed"},
		"done before, told without time":    {ended: -5 * time.Second, told: -5 * time.Second, want: "Completed"},
		"done since it was told":            {ended: -4 * time.Second, told: -5 * time.Second, grace: 30, want: "Deleted"},
		"done at once as it was told":       {ended: -5 * time.Second, told: -5 * time.Second, grace: 30, want: "Deleted"},
		"done before, of the Run's own":     {ended: -10 * time.Second, told: -5 * time.Second, own: true, want: "Deleted"},
		"gone, and seen as it was done":     {seen: "done", gone: true, want: "Completed"},
		"gone, and seen as it was told":     {seen: "told", gone: true, want: "Deleted"},
		"gone, and nobody has seen it":      {gone: true, want: "Deleted"},
		"finalized, and seen as it is told": {ended: -9 * time.Second, told: -5 * time.Second, seen: "told", want: "Deleted"},
	} {
		d := Decide(scene(func(o *Observed) {
			o.pods("n0", "n1 Succeeded", "n2", "n3")
			started(o)
			if !c.own {
				o.Run.Spec.Source, o.Run.Spec.Pods = rqv1.SourcePods, &rqv1.RunPods{Kind: "Job", Name: "g"}
				for _, pod := range o.Pods {
					pod.Labels[rqv1.LabelSource] = string(rqv1.SourcePods)
				}
			}
			pod := o.Pods[1]
			if left := pod.DeepCopy(); c.seen != "" {
				if c.seen == "told" {
					left.Status.Phase, left.DeletionTimestamp = corev1.PodRunning, ptr.To(at(time.Minute))
				}
				o.Left = map[types.UID]*corev1.Pod{pod.UID: left}
			}
			pod.DeletionTimestamp = ptr.To(at(c.told + time.Duration(c.grace)*time.Second))
			pod.DeletionGracePeriodSeconds = &c.grace
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{FinishedAt: at(c.ended)}}}}
			if c.gone {
				o.Pods = append(o.Pods[:1:1], o.Pods[2:]...)
			}
		}))
		if len(d.Close) != 1 || d.Close[0].Reason != c.want {
			t.Errorf("%s: closed as %+v", name, d.Close)
		}
	}
}
