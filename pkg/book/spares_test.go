package book_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// on returns the node of a pod.
func (w *world) on(name string) string { return w.Pods[w.pod(name)].Spec.NodeName }

// running asserts that a Run runs.
func (w *world) running(name, why string) {
	if phase := w.Runs[name].Status.Phase; phase != rqv1.RunRunning {
		w.t.Fatalf("%s is %s %s: %s", name, phase, why, w.Runs[name].Status.Message)
	}
}

func TestSparesStartWithTheirGang(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 16)
		w.submitWithSpares("run0", "org:a", 1, 1, 8, 1)
		w.settle()
		if phase := w.Runs["run0"].Status.Phase; phase != rqv1.RunPending || len(w.OpenLeases()) > 0 {
			w.t.Fatalf("run0 is %s with %d Leases although its spare has no room", phase, len(w.OpenLeases()))
		}
		w.addNode("n1", "d0")
		w.settle()
		w.running("run0", "although there is room")
		if active, spare := w.on("run0-0"), w.on("run0-s0"); active == spare || spare == "" {
			w.t.Fatalf("the active pod is on %q and its spare on %q", active, spare)
		}
		w.checkSettled()
	})
}

func TestALostSpareIsReplacedWhenThereIsRoom(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.addNode("n1", "d0")
		w.addNode("n2", "d1")
		w.setBudget("a", "org:a", 32)
		w.submitWithSpares("run0", "org:a", 1, 1, 8, 1)
		w.settle()
		if on := w.on("run0-s0"); on != "n1" {
			w.t.Fatalf("the spare is on %s, want n1", on)
		}
		w.RemoveNode("n1")
		w.settle()
		w.running("run0", "after it lost its spare")
		if on := w.on("run0-s0"); on != "" {
			w.t.Fatalf("the spare is on %s, in another domain than its group", on)
		}
		w.addNode("n1", "d0")
		w.settle()
		if on := w.on("run0-s0"); on != "n1" {
			w.t.Fatalf("the spare is on %q although there is room on n1", on)
		}
		w.checkSettled()
	})
}

func TestALostRankIsReplacedThoughASpareIsMissing(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.addNode("n1", "d0")
		w.setBudget("a", "org:a", 32)
		w.submitWithSpares("run0", "org:a", 1, 1, 8, 1)
		w.settle()
		w.RemoveNode("n1")
		w.settle()
		w.DeletePod(w.pod("run0-0"))
		w.settle()
		w.running("run0", "after it lost a pod that has room")
		if on := w.on("run0-0"); on != "n0" {
			w.t.Fatalf("the rank is on %q", on)
		}
		w.checkSettled()
	})
}

func TestSparesThatAreRefusedDoNotHoldUpOthers(t *testing.T) {
	tell(t, func(w *world) {
		for _, node := range []string{"n0", "n1", "n2", "n3"} {
			w.addNode(node, map[bool]string{true: "d0", false: "d1"}[node < "n2"])
		}
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run0", "org:a", 2, 1, 8, 1)
		w.settle()
		w.running("run0", "although there is room")
		for _, spare := range []string{"run0-s0", "run0-s1"} {
			w.RemoveNode(w.on(spare))
		}
		w.settle()
		freed := "d1"
		if w.Nodes[w.on("run0-1")].Labels["fabric.domain"] == "d0" {
			freed = "d0"
		}
		w.addNode("n4", freed)
		w.settle()
		if w.on("run0-s0") != "" || w.on("run0-s1") != "n4" {
			w.t.Fatalf("the spares are on %q and %q, want only the second's domain to have room", w.on("run0-s0"),
				w.on("run0-s1"))
		}
		w.running("run0", "without one of its spares")
		w.checkSettled()
	})
}

func TestASpareHoldsGPUsUntilItsLeaseCloses(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.addNode("n1", "d0")
		w.setBudget("a", "org:a", 32)
		w.submitWithSpares("run0", "org:a", 1, 1, 8, 1)
		w.settle()
		w.submit("run1", "org:a", 1, 1, 8)
		w.settle()
		if phase := w.Runs["run1"].Status.Phase; phase != rqv1.RunPending {
			w.t.Fatalf("run1 is %s on GPUs that a spare holds", phase)
		}
		w.EndPod(w.pod("run0-0"), corev1.PodSucceeded)
		w.settle()
		if phase := w.Runs["run0"].Status.Phase; phase != rqv1.RunCompleted {
			w.t.Fatalf("run0 is %s after all of its ranks succeeded", phase)
		}
		w.running("run1", "after run0 gave its GPUs back")
		for _, lease := range w.Leases {
			if lease.Spec.RunRef.Name == "run0" && lease.Status.ClosureReason != rqv1.ClosedCompleted {
				w.t.Fatalf("Lease %s is closed as %q", lease.Name, lease.Status.ClosureReason)
			}
		}
		w.checkSettled()
	})
}

func TestASpareWhoseNodeGoesBeforeItIsBoundIsPlacedAgain(t *testing.T) {
	tell(t, func(w *world) {
		for _, node := range []string{"n0", "n1", "n2"} {
			w.addNode(node, "d0")
		}
		w.setBudget("a", "org:a", 32)
		w.submitWithSpares("run0", "org:a", 1, 1, 8, 1)
		w.settle()
		w.DeletePod(w.pod("run0-s0"))
		w.reconcile("run0")
		spare := w.pod("run0-s0")
		node, refusal := w.Book.Place(spare, w.Now)
		if refusal != nil {
			w.t.Fatal(refusal)
		}
		w.RemoveNode(node)
		w.settle()
		if on := w.on("run0-s0"); on == "" || on == node {
			w.t.Fatalf("the spare is on %q", on)
		}
		w.checkSettled()
	})
}

// Spares stay together also when none of the pods that they stand by for is left.
func TestSparesOfAFinishedGroupStayTogether(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 3)
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run0", "org:a", 2, 1, 4, 2)
		w.settle()
		w.fleet("d1", 2)
		w.EndPod(w.pod("run0-0"), corev1.PodSucceeded)
		w.DeletePod(w.pod("run0-s0"))
		w.DeletePod(w.pod("run0-s1"))
		w.reconcile("run0")
		w.submit("run1", "org:a", 1, 2, 4) // leaves room for one of them
		w.reconcile("run1")
		w.cycle(w.pod("run1-0"))
		w.settle()
		w.check()
	})
}
