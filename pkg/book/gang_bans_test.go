package book_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestWhatOneKindOfPodIsTurnedDownForDoesNotBarOthers: of a group some pods use a volume that is in one domain, and the
// others one that is in another. Each kind is turned down where the other is to be, and the group starts, whether other
// rules are asked before or find out later, and however many pods a node has room for.
func TestWhatOneKindOfPodIsTurnedDownForDoesNotBarOthers(t *testing.T) {
	for _, asks := range []bool{false, true} {
		for _, perNode := range []int{1, 2} {
			for _, far := range []string{"d0", "d1"} {
				t.Run(fmt.Sprintf("asks %v, %d on a node, the first not in %s", asks, perNode, far), func(t *testing.T) {
					tell(t, func(w *world) {
						w.asks(asks)
						w.fleet("d0", 2/perNode)
						w.fleet("d1", 2/perNode)
						w.setBudget("a", "org:a", 48)
						w.controllers.claims = map[int]string{0: "x", 1: "x", 2: "y", 3: "y"}
						w.Turns = func(pod *corev1.Pod, node string) string {
							first := len(pod.Spec.Volumes) > 0 && pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName == "x"
							if in := w.domainOf(w.Nodes[node]); first == (in == far) {
								return "node(s) had volume node affinity conflict"
							}
							return ""
						}
						w.submitWithSpares("run00", "org:a", 1, 4, 8/perNode, 0, ungrouped, theirs)
						w.rounds(12)
						startsWhole(t, w, 4)
					})
				})
			}
		}
	}
}
