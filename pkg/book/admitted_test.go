package book_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// tolerating has admission give ranks, which ask for GPUs, a toleration that no template has, as the API server's own
// ExtendedResourceToleration does.
func (w *world) tolerating() {
	w.Admits = func(pod *corev1.Pod) {
		if pod.Labels[rqv1.LabelRole] != string(rqv1.RoleSpare) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: "nvidia.com/gpu",
				Operator: corev1.TolerationOpExists})
		}
	}
}

// taint has a node be for those alone who ask for GPUs.
func (w *world) taint(name string) {
	node := w.Nodes[name].DeepCopy()
	node.Spec.Taints = []corev1.Taint{{Key: "nvidia.com/gpu", Effect: corev1.TaintEffectNoSchedule}}
	w.SetNode(node)
}

// Where ranks may go is a matter of the pods that were admitted: their spares stand by there too, and make room.
func TestSparesStandByWhereAdmittedRanksMayGo(t *testing.T) {
	for _, ranks := range []int{1, 2} {
		tell(t, func(w *world) {
			w.tolerating()
			w.asks(ranks == 2)
			for _, name := range []string{"n0", "n1", "n2"} {
				w.addNode(name, "d0")
				w.taint(name)
			}
			w.setBudget("a", "org:a", 64)
			w.submitWithSpares("run0", "org:a", 1, ranks, 8, 1)
			w.settle()
			w.running("run0", "although its pods tolerate the taints")
			spare := w.on("run0-s0")
			if spare == "" {
				w.t.Fatalf("its spare has no place: %s", w.describe("run0"))
			}
			w.Lose(w.on("run0-0"))
			w.settle()
			if on := w.on("run0-0"); on != spare {
				w.t.Fatalf("the rank is on %q, and its spare was on %s: %s", on, spare, w.describe("run0"))
			}
		})
	}
}

// No spare is placed where no rank may go, whatever it may itself.
func TestNoSpareWhereAdmittedRanksMayNotGo(t *testing.T) {
	tell(t, func(w *world) {
		w.Admits = func(pod *corev1.Pod) {
			if pod.Labels[rqv1.LabelRole] != string(rqv1.RoleSpare) {
				pod.Spec.NodeSelector = map[string]string{"pool": "train"}
			}
		}
		for i, name := range []string{"n0", "n1", "n2"} {
			w.addNode(name, "d0")
			node := w.Nodes[name].DeepCopy()
			if node.Labels["pool"] = "train"; i == 2 {
				node.Labels["pool"] = "serve"
			}
			w.SetNode(node)
		}
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run0", "org:a", 1, 1, 8, 1)
		w.settle()
		w.Lose(w.on("run0-s0"))
		for range 10 {
			w.round()
		}
		w.running("run0", "although only its spare is lost")
		if on := w.on("run0-s0"); on == "n2" {
			w.t.Fatalf("the spare is on %s, where its rank may not go", on)
		}
	})
}

// A Run whose pod has gone, as nobody can pay for it meanwhile, keeps the date that the pod had as it was admitted.
func TestADateByThePodThatWasAdmitted(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.tolerating()
		s.setBudget("a", "org:a", 16)
		s.addNode("n0", "d0")
		s.taint("n0")
		s.submit("run0", "org:a", 1, 1, 8)
		s.work()
		s.running("run0", "although its pod tolerates the taint")
		s.submit("run1", "org:a", 1, 1, 8)
		s.work()
		s.edit("a", func(e *rqv1.Envelope) { e.Start = &metav1.Time{Time: s.Now.Add(time.Hour)} })
		s.finish("run0")
		for range 3 {
			s.passes(10 * time.Second)
			if s.reservationOf("run1") == nil {
				s.t.Fatalf("run1 has no date\n%s", s.story())
			}
		}
	})
}
