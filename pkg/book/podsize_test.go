package book_test

import (
	"fmt"
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/sim"
)

// unsized has a Run leave it to the fleet how many GPUs its pods have.
func unsized(s *rqv1.RunSpec) { s.Resources.GPUsPerPod, s.Locality, s.SparesPerGroup = nil, nil, nil }

// spared is unsized, with one pod in reserve.
func spared(s *rqv1.RunSpec) { s.Resources.GPUsPerPod, s.Locality = nil, nil }

// TestThePodSizeOfARunThatRunsIsKept loses the only rank of a Run that runs on, in its spare's place, and has a new
// process go on: the rank is made as large as it was, whatever the nodes are by then.
func TestThePodSizeOfARunThatRunsIsKept(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.addNode("n1", "d0")
		w.addSmall("n2", 4)
		w.addSmall("n3", 4)
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run0", "org:a", 1, 1, 8, 1, spared, checkpointed)
		w.settle()
		w.running("run0", "it fits")
		w.RemoveNode(w.on("run0-0"))
		w.crash()
		for range 12 {
			w.round()
			w.Pass(time.Second)
		}
		run := w.Runs["run0"]
		if _, second := w.podsOf("run0")["run0-1"]; second || run.Status.GPUsPerPod != 8 {
			w.t.Fatalf("its pods have %d GPUs: %v", run.Status.GPUsPerPod, w.podsOf("run0"))
		}
	})
}

// TestAPodSizeThatIsOutgrown has a Run wait with a pod of a size with which it can never start since the nodes have
// changed: it gets pods of another one.
func TestAPodSizeThatIsOutgrown(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.addNode("n1", "d0")
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run1", "org:a", 1, 1, 8, 0, unsized)
		w.settle()
		w.submitWithSpares("run0", "org:a", 1, 2, 8, 0, unsized)
		w.settle()
		w.waits("run0", "while one node is in use")
		w.RemoveNode(map[string]string{"n0": "n1", "n1": "n0"}[w.on("run1-0")])
		for i := range 4 {
			w.addSmall(fmt.Sprint("s", i), 4)
		}
		w.settle()
		w.running("run0", "in four pods of 4")
	})
}

// TestARequeuedRunOfAnotherPodSize loses a node of a Run, and gets smaller ones for it: before its pod of the old size
// is there, and after.
func TestARequeuedRunOfAnotherPodSize(t *testing.T) {
	for _, before := range []int{1, 2} {
		t.Run(fmt.Sprint(before), func(t *testing.T) {
			tell(t, func(w *world) {
				w.addNode("n0", "d0")
				w.addNode("n1", "d0")
				w.setBudget("a", "org:a", 16)
				w.setBudget("b", "org:b", 64)
				w.submitWithSpares("run0", "org:a", 1, 2, 8, 0, unsized, checkpointed)
				w.settle()
				w.running("run0", "it fits")
				w.Pass(time.Second)
				w.submit("run1", "org:b", 1, 1, 8)
				w.settle()
				w.RemoveNode(w.on("run0-0"))
				w.rounds(2)
				for i := range before {
					w.addSmall(fmt.Sprint("s", i), 4)
				}
				w.rounds(5)
				if before == 1 {
					w.addSmall("t", 4)
				}
				w.rounds(8)
				w.running("run0", "there are 8 + 4 + 4 GPUs: "+w.describe("run0"))
				w.waits("run1", "since it is younger")
			})
		})
	}
}

// TestAnEditDoesNotKeepAPodSize edits a requeued Run while nothing of it is left.
func TestAnEditDoesNotKeepAPodSize(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.addNode("n1", "d0")
		for _, name := range []string{"s1", "s2", "s3"} {
			w.addSmall(name, 4)
		}
		w.setBudget("a", "org:a", 16)
		w.submitWithSpares("run0", "org:a", 1, 2, 8, 0, unsized, checkpointed)
		w.settle()
		w.running("run0", "it fits")
		w.RemoveNode(w.on("run0-0"))
		w.amend("run0", func(s *rqv1.RunSpec) {
			s.Runtime = s.Runtime.DeepCopy()
			s.Runtime.Checkpoint.Duration += time.Minute
		})
		w.rounds(20)
		w.running("run0", "there are 8 + 4 + 4 + 4 GPUs: "+w.Runs["run0"].Status.Message)
	})
}

// TestDevicesThatAreAwayForAMoment has the devices of nodes be away while their plugin starts again: a Run that waits
// with pods of 8 keeps them.
func TestDevicesThatAreAwayForAMoment(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.addNode("n1", "d0")
		w.setBudget("a", "org:a", 64)
		w.submit("run1", "org:a", 1, 1, 8)
		w.settle()
		for i := range 4 {
			w.addSmall(fmt.Sprint("s", i), 4)
		}
		w.submit("run2", "org:a", 1, 4, 4) // takes the rest of n0 or n1, or small ones
		w.settle()
		w.submitWithSpares("run0", "org:a", 1, 2, 8, 0, unsized)
		w.settle()
		w.waits("run0", "a node is in use")
		before := w.podsOf("run0")
		for _, name := range []string{"n0", "n1"} {
			node := w.Nodes[name].DeepCopy()
			delete(node.Status.Allocatable, "nvidia.com/gpu")
			w.SetNode(node)
		}
		w.rounds(3)
		for _, name := range []string{"n0", "n1"} {
			node := w.Nodes[name].DeepCopy()
			node.Status.Allocatable = node.Status.Capacity.DeepCopy()
			w.SetNode(node)
		}
		w.rounds(5)
		w.unchanged(before)
		for _, p := range w.Pods {
			if p.Labels[rqv1.LabelRun] == "run0" {
				if q := p.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]; q.Value() != 8 {
					w.t.Fatalf("its pods have %d GPUs", q.Value())
				}
			}
		}
	})
}

// largeAndSmall adds two nodes of 8 GPUs and four of 4, each labelled so.
func (w *world) largeAndSmall() {
	w.addNode("n0", "d0")
	w.addNode("n1", "d0")
	w.label("n0", "large")
	w.label("n1", "large")
	for i := range 4 {
		w.addSmall(fmt.Sprint("s", i), 4)
		w.label(fmt.Sprint("s", i), "small")
	}
}

// TestThePodSizeThatIsPaid asks what would happen to a Run that is paid for on small nodes alone, has it wait for
// another there, and has these nodes come to be paid for no more: what is foretold is what becomes of it.
func TestThePodSizeThatIsPaid(t *testing.T) {
	tell(t, func(w *world) {
		w.largeAndSmall()
		w.payOn("a", "org:a", 16, "small")
		w.setBudget("b", "org:b", 4)
		w.submit("run1", "org:b", 1, 1, 4)
		w.settle()
		w.submitWithSpares("run0", "org:a", 1, 2, 8, 0, unsized)
		foretold := w.Book.WhatIf(w.Runs["run0"], w.Now)
		w.settle()
		if on := w.on("run1-0"); on[0] != 's' {
			w.t.Fatalf("run1 runs on %s", on)
		}
		w.waits("run0", "while another has one of four small nodes")
		refused := w.Book.Refusal(w.Runs["run0"].UID)
		if foretold.Refusal == nil || refused == nil || foretold.Refusal.Message != refused.Message {
			w.t.Fatalf("foretold %+v, and it is %+v", foretold.Refusal, refused)
		}
		w.podsOfSize("run0", 4)
		w.payOn("a", "org:a", 16, "large")
		w.settle()
		w.running("run0", "in pods of 4 on large nodes")
		w.podsOfSize("run0", 4)
	})
}

// A Run that is requeued keeps the size of its pods with its room, whoever comes to pay meanwhile and whoever decides:
// the room is for pods of that size.
func TestARequeuedRunKeepsTheSizeOfItsPods(t *testing.T) {
	for writes := range 19 {
		t.Run(fmt.Sprint("dies after ", writes), func(t *testing.T) {
			tell(t, func(w *world) {
				w.largeAndSmall()
				w.payOn("a", "org:a", 16, "small")
				w.submitWithSpares("run0", "org:a", 1, 2, 8, 0, unsized, checkpointed)
				w.settle()
				w.running("run0", "in pods of 4 on small nodes")
				w.podsOfSize("run0", 4)
				w.setBudget("a", "org:a", 16)
				w.cordoned("n0", true)
				w.cordoned("n1", true)
				w.dies(writes, sim.All)
				w.Lose(w.on("run0-0"))
				w.rounds(12)
				w.waits("run0", "for a small node")
				w.podsOfSize("run0", 4)
				w.addSmall("s4", 4)
				w.settle()
				w.running("run0", "where its room was kept")
				w.podsOfSize("run0", 4)
			})
		})
	}
}

// podsOfSize asserts how many GPUs the pods of a Run have.
func (w *world) podsOfSize(run string, gpus int64) {
	w.t.Helper()
	for name := range w.podsOf(run) {
		q := w.Pods[w.pod(name)].Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]
		if q.Value() != gpus {
			w.t.Fatalf("pod %s has %d GPUs, want %d", name, q.Value(), gpus)
		}
	}
}
