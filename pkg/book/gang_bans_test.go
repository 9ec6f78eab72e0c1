package book_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestWhatOneKindOfPodIsTurnedDownForDoesNotBarOthers: of a group some pods use a volume that is in one domain, and the
// others one that is in another. Each kind is turned down where the other is to be, and the group starts, whether other
// rules are asked before or find out later, and however many pods a node has room for.
func TestWhatOneKindOfPodIsTurnedDownForDoesNotBarOthers(t *testing.T) {
	for _, asks := range []bool{false, true} {
		for _, perNode := range []int{1, 2} {
			for near, far := range map[string]string{"d0": "d1", "d1": "d0"} {
				t.Run(fmt.Sprintf("asks %v, %d on a node, the first in %s", asks, perNode, near), func(t *testing.T) {
					tell(t, func(w *world) {
						w.asks(asks)
						w.setBudget("a", "org:a", 48)
						w.halves(perNode)
						w.useVolumes(near, far)
						w.submitWithSpares("run00", "org:a", 1, 4, 8/perNode, 0, ungrouped, theirs)
						w.rounds(12)
						startsWhole(t, w, 4)
					})
				})
			}
		}
	}
}

// TestRoomIsMadeForPodsOfSeveralKinds: of a group some pods may be in one domain alone and the others in another, by
// what they say of nodes or by rules that a plan does not know. Others hold both domains and may be cut: they are.
func TestRoomIsMadeForPodsOfSeveralKinds(t *testing.T) {
	for _, asked := range []bool{false, true} {
		for n, perNode := range []int{1, 2, 2} {
			groups := max(1, n)
			t.Run(fmt.Sprintf("asked %v, %d groups, %d on a node", asked, groups, perNode), func(t *testing.T) {
				tellStorm(t, func(s *storm) {
					s.asks(true)
					s.halves(perNode)
					s.setBudget("a", "org:a", 64)
					s.setBudget("b", "org:b", 64)
					for i := range 4 / perNode {
						s.submitWithSpares(fmt.Sprintf("holder%d", i), "org:a", 1, 1, 8, 0, checkpointed)
					}
					s.work()
					s.during(time.Minute)
					if asked {
						s.useVolumes("d1", "d0")
					} else {
						first, last := allOf("d1", 2/perNode), allOf("d0", 2/perNode)
						s.controllers.pinned = map[int]string{0: first, 1: first, 2: last, 3: last}
					}
					if groups == 2 {
						s.submitWithSpares("run00", "org:b", 2, 2, 8/perNode, 0, theirs)
					} else {
						s.submitWithSpares("run00", "org:b", 1, 4, 8/perNode, 0, ungrouped, theirs)
					}
					for n := 0; n < 60 && s.Runs["run00"].Status.Phase != rqv1.RunRunning; n++ {
						s.during(30 * time.Second)
						s.work()
					}
					s.running("run00", "although room could be made for each of its pods")
				})
			})
		}
	}
}

// halves adds two domains, each of which has room for two of four pods that lie so many on a node.
func (w *world) halves(perNode int) {
	w.fleet("d0", 2/perNode)
	w.fleet("d1", 2/perNode)
}

// useVolumes has the first two of four pods use a volume that is in one domain, and the others one that is in another.
func (w *world) useVolumes(first, last string) {
	w.controllers.claims = map[int]string{0: "x", 1: "x", 2: "y", 3: "y"}
	w.Turns = w.eachIn(map[string]string{"x": first, "y": last})
}

// eachIn has nodes turn those pods down that use a volume which is in another domain.
func (w *world) eachIn(domains map[string]string) func(pod *corev1.Pod, node string) string {
	return func(pod *corev1.Pod, node string) string {
		for _, v := range pod.Spec.Volumes {
			if c := v.PersistentVolumeClaim; c != nil && domains[c.ClaimName] != w.domainOf(w.Nodes[node]) {
				return "node(s) had volume node affinity conflict"
			}
		}
		return ""
	}
}

// allOf names the nodes of a domain.
func allOf(domain string, nodes int) string {
	names := make([]string, nodes)
	for i := range names {
		names[i] = fmt.Sprintf("%s-n%02d", domain, i)
	}
	return strings.Join(names, ",")
}
