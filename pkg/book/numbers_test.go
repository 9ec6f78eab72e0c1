package book_test

import "testing"

// TestNoNumberOverflows: pods that others bind to a node hold it, whatever numbers they ask for, until they are gone;
// and then all of it is free again.
func TestNoNumberOverflows(t *testing.T) {
	for name, gpus := range map[string]int{"half of what can be counted": 1 << 62, "a third": 1<<63 - 1} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.addNode("n0", "d0")
				w.setBudget("a", "org:a", 64)
				for _, other := range []string{"x", "y", "z"} {
					w.foreign(other, "n0", gpus)
				}
				w.submit("run0", "org:a", 1, 1, 8)
				w.settle()
				w.waits("run0", "on a node that is full")
				for _, uid := range w.SortedPods() {
					if w.Pods[uid].Name == "x" || w.Pods[uid].Name == "y" || w.Pods[uid].Name == "z" {
						w.DeletePod(uid)
					}
				}
				w.settle()
				w.running("run0", "although its node is free")
			})
		})
	}
}
