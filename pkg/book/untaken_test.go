package book_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Whoever may create pods may write any node into them. Shards leave for such a pod once a kubelet has taken it, not
// before: it turns the pod away for what shards have, and all of the fleet's could be ended so.
func TestShardsLeaveForAPodThatAKubeletHasTaken(t *testing.T) {
	for what, asks := range map[string]func(c *corev1.Container){
		"GPUs": func(c *corev1.Container) { asksOf(c, "nvidia.com/gpu", 8) },
		"CPUs": func(c *corev1.Container) { asksOf(c, "cpu", 13) },
		"all numbers": func(c *corev1.Container) {
			asksOf(c, "nvidia.com/gpu", 1<<62)
			asksOf(c, "cpu", 1<<40)
		},
	} {
		t.Run(what, func(t *testing.T) {
			tell(t, func(w *world) {
				w.fleet("d0", 4)
				w.setBudget("a", "org:a", 64)
				w.submitWithSpares("run0", "org:a", 1, 2, 2, 0, opportunistic, withCPU("4", 0))
				w.settle()
				w.expect("run0", "Running", "2 of 2 shards run", map[string]int{"open Start Borrowed": 2})
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "put", UID: "put"}}
				pod.Spec.NodeName, pod.Spec.Containers = w.on("run0-0"), []corev1.Container{{Name: "main"}}
				asks(&pod.Spec.Containers[0])
				pod.Spec.Containers[0].Resources.Requests = pod.Spec.Containers[0].Resources.Limits
				w.SetBystander(pod)
				for range 5 {
					w.round()
					w.Pass(time.Second)
				}
				for _, lease := range w.Leases {
					if lease.Status.Closed {
						w.t.Fatalf("a shard has left for a pod that no kubelet has taken: %s", w.describe("run0"))
					}
				}
				taken := pod.DeepCopy()
				taken.Status.StartTime = &metav1.Time{Time: w.Now}
				w.SetBystander(taken)
				for range 5 {
					w.round()
					w.Pass(time.Second)
				}
				if left := w.shards("run0")[pod.Spec.NodeName]; left > 0 && what == "GPUs" {
					w.t.Fatalf("%d shards stay on GPUs that a pod has: %s", left, w.describe("run0"))
				}
				closed := 0
				for _, lease := range w.Leases {
					if lease.Status.ClosureReason == rqv1.ClosedReclaimed {
						closed++
					}
				}
				if closed == 0 {
					w.t.Fatalf("no shard has left for a pod that runs: %s", w.describe("run0"))
				}
				w.DropBystander(types.UID("put"))
				w.settle()
			})
		})
	}
}
