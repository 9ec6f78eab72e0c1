package book_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

const adapters = corev1.ResourceName("rdma/hca")

// adapted gives a node eight network adapters.
func (w *world) adapted(name string) {
	node := w.Nodes[name].DeepCopy()
	node.Status.Allocatable[adapters] = resource.MustParse("8")
	w.SetNode(node)
}

// withAdapters has a Run's pods ask for network adapters, as extended resources are asked for.
func withAdapters(n string) func(*rqv1.RunSpec) {
	return func(s *rqv1.RunSpec) {
		asks := corev1.ResourceList{adapters: resource.MustParse(n)}
		s.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main",
			Resources: corev1.ResourceRequirements{Requests: asks, Limits: asks}}}}}
	}
}

// Devices beside GPUs are counted as kube-scheduler counts them, and those of whoever is cut are free then: a Run is
// cut whose devices do, and nobody where somebody else holds them who stays.
func TestDevicesOfThoseWhoAreCutAreFree(t *testing.T) {
	for name, stays := range map[string]bool{"a Run holds them": false, "a pod that stays holds one": true} {
		t.Run(name, func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				s.asks(true)
				s.addNode("n0", "d0")
				s.adapted("n0")
				s.setBudget("a", "org:a", 64)
				s.setBudget("b", "org:b", 64)
				held := "8"
				if stays {
					held = "7"
				}
				s.submitWithSpares("holder", "org:a", 1, 1, 8, 0, checkpointed, withAdapters(held))
				s.work()
				if stays {
					pod := asking(map[corev1.ResourceName]string{adapters: "1"}, nil)
					pod.Name, pod.UID, pod.Namespace, pod.Spec.NodeName = "stays", types.UID("stays"), "other", "n0"
					s.SetBystander(pod)
				}
				s.during(time.Minute)
				s.submitWithSpares("wants", "org:b", 1, 1, 8, 0, withAdapters("8"))
				s.work()
				if stays {
					s.later(30 * time.Minute)
					s.uncut()
					return
				}
				s.due()
				s.later(10 * time.Second)
				s.running("wants", "although the holder's devices would do")
			})
		})
	}
}

// What a spare holds for its rank beside GPUs is held after a restart too, in whatever order the process learns of
// Runs, pods and Leases.
func TestASpareHoldsCPUAfterARestart(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.addNode("n1", "d0")
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run0", "org:a", 1, 1, 4, 1, withCPU("12", 0))
		w.settle()
		w.crash()
		w.submitWithSpares("run1", "org:a", 1, 1, 4, 0, withCPU("12", 0))
		for range 4 {
			w.round()
		}
		if on := w.on("run1-0"); on != "" {
			w.t.Fatalf("run1 is on %s, where run0 has its CPU", on)
		}
	})
}
