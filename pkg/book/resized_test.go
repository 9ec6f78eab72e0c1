package book_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// resized has a pod ask for other CPUs than it was made with, and its node have given it those.
func (w *world) resized(name, cpu string) {
	pod := w.Pods[w.pod(name)].DeepCopy()
	beside(&pod.Spec, cpu, 0)
	w.unforeseen()
	w.SetPod(pod)
}

// A pod that is resized where it runs holds what it asks for now: others find the rest, and no more than that.
func TestAPodThatIsResized(t *testing.T) {
	for name, c := range map[string]struct{ before, after, on string }{
		"to less": {"12", "2", "n0"},
		"to more": {"2", "12", "n1"},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.Cluster.Rejected = w.turnedDown
				w.addNode("n0", "d0")
				w.setBudget("a", "org:a", 64)
				w.submitWithSpares("run0", "org:a", 1, 1, 4, 0, withCPU(c.before, 0))
				w.settle()
				w.running("run0", "although it is alone")
				if c.after == "12" {
					w.resized("run0-0", c.after)
					w.addNode("n1", "d0")
				}
				w.submitWithSpares("run1", "org:a", 1, 1, 4, 0, withCPU("8", 0))
				w.settle()
				if c.after == "2" {
					w.resized("run0-0", c.after)
					w.settle()
				}
				w.running("run1", "although a node has CPU")
				if on := w.on("run1-0"); on != c.on {
					w.t.Fatalf("it runs on %s, want %s", on, c.on)
				}
			})
		})
	}
}

// A pod with GPUs that is no Run's is resized: who waits for what it held learns of it.
func TestAPodOfOthersIsResized(t *testing.T) {
	tell(t, func(w *world) {
		w.Cluster.Rejected = w.turnedDown
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 64)
		other := func(cpu string) *corev1.Pod {
			pod := asking(map[corev1.ResourceName]string{"nvidia.com/gpu": "4", "cpu": cpu}, nil)
			pod.Name, pod.UID, pod.Namespace, pod.Spec.NodeName = "other", types.UID("other"), "other", "n0"
			return pod
		}
		w.SetBystander(other("12"))
		w.submitWithSpares("run0", "org:a", 1, 1, 4, 0, withCPU("8", 0))
		w.settle()
		w.SetBystander(other("2"))
		w.settle()
		w.running("run0", "although its node has CPU")
	})
}

// A pod that bears a Run's label and is none of its pods holds what it holds.
func TestAPodThatBearsARunsLabel(t *testing.T) {
	tell(t, func(w *world) {
		w.Cluster.Rejected = w.turnedDown
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 64)
		pod := asking(map[corev1.ResourceName]string{"cpu": "12"}, nil)
		pod.Name, pod.UID, pod.Namespace, pod.Spec.NodeName = "daemon", types.UID("daemon"), "other", "n0"
		pod.Labels = map[string]string{rqv1.LabelRun: "run0"}
		w.SetBystander(pod)
		w.submitWithSpares("run0", "org:a", 1, 1, 8, 0, withCPU("8", 0))
		w.settle()
		if r := w.Book.Refusal(w.Runs["run0"].UID); r == nil || r.Rejected == nil || !r.Rejected.Known {
			w.t.Fatalf("it is refused for %+v", r)
		}
	})
}
