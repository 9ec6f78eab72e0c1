package book_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// addSmall adds a node with few GPUs.
func (w *world) addSmall(name string, gpus int64) {
	w.addNode(name, "d0")
	node := w.Nodes[name].DeepCopy()
	node.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI)}
	w.SetNode(node)
}

// TestARunThatIsAloneNoMore starts a Run in one pod and has it go on in two smaller ones, since no other node is as
// large as the first, which goes before a new process has begun: those two find each other by the Run's Service, which
// every world asserts of a pod that is made.
func TestARunThatIsAloneNoMore(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		for _, name := range []string{"n1", "n2", "n3"} {
			w.addSmall(name, 4)
		}
		w.setBudget("a", "org:a", 16)
		w.submitWithSpares("run0", "org:a", 1, 1, 8, 0, func(s *rqv1.RunSpec) {
			s.Resources.GPUsPerPod, s.Locality, s.SparesPerGroup = nil, nil, nil
		}, checkpointed)
		w.settle()
		w.running("run0", "on one node")
		w.RemoveNode("n0")
		w.crash()
		for range 20 {
			w.reconcile("run0")
			w.round()
			w.Pass(time.Second)
		}
		w.running("run0", "in two pods")
		if pods := w.podsOf("run0"); len(pods) != 2 {
			w.t.Fatalf("its pods are %v", pods)
		}
	})
}
