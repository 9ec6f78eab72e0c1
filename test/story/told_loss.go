package story

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// lossStories are of pods and nodes that go from under a Run.
func lossStories() []Story {
	return []Story{
		{Name: "pod-deleted-by-hand", Play: podDeletedByHand},
		{Name: "run-replaced-by-its-name", Play: replacedByItsName},
		{Name: "node-deleted-room-in-the-domain", Play: func(s *Teller) {
			nodeDeleted(s, 3, rqv1.RunRunning, "bound 16 GPUs")
			s.Ledger("train", Leases{Open: 4, "NodeFailure": 2})
		}},
		{Name: "node-deleted-no-room", Play: func(s *Teller) {
			nodeDeleted(s, 2, rqv1.RunFailed, "could not be replaced")
		}},
		{Name: "node-deleted-room-in-another", Play: func(s *Teller) {
			nodeDeleted(s, 2, rqv1.RunRunning, "bound 16 GPUs", Checkpointed(time.Minute))
		}},
		{Name: "cordon-is-no-loss", Play: cordonIsNoLoss},
		{Name: "node-lost-under-a-deleted-run", Play: nodeLostUnderADeletedRun},
		{Name: "requeued-keeps-its-room", Play: requeuedKeepsItsRoom},
	}
}

// podDeletedByHand deletes a pod of a Run that runs: another takes its rank, under a Lease of its own.
func podDeletedByHand(s *Teller) {
	s.Nodes("d0", 2)
	s.Fund("", Envelope("all", 16))
	s.Submit("train", 16, InPods(4))
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	before := s.Pods("train")
	s.DeletePod("train-2")
	s.Remade("train", before, "train-2")
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	s.Ledger("train", Leases{Open: 4, "Deleted": 1})
}

// replacedByItsName deletes a Run and submits another of its name at once: the second is served as its own.
func replacedByItsName(s *Teller) {
	s.Nodes("d0", 2)
	s.Fund("", Envelope("all", 16))
	s.Submit("again", 16, InPods(4))
	first := s.Says("again", rqv1.RunRunning, "bound 16 GPUs")
	s.Remove("again")
	s.Until("the name is to be free", func() error {
		if s.World().Run("again") != nil {
			return errors.New("it is not")
		}
		return nil
	})
	s.Submit("again", 8, InPods(1))
	second := s.Says("again", rqv1.RunRunning, "bound 8 GPUs")
	s.Same("it is the first", false, second.UID == first.UID)
}

// nodeDeleted deletes a node under a Run that fills two of a domain: lost pods are replaced in their group's domain
// when there is room; else the Run waits again if it has a checkpoint, and fails if not (R22, R27).
func nodeDeleted(s *Teller, nodes int, phase rqv1.RunPhase, says string, changes ...RunChange) {
	s.Nodes("d0", nodes)
	s.Nodes("d1", nodes)
	s.Fund("", Envelope("all", 100))
	s.Submit("train", 16, append(changes, InPods(4), InGroups(16))...)
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	s.Sound()
	lost := s.On("train-0")
	s.RemoveNode(lost)
	gone := func() error {
		if held := s.Held("train"); held[lost] > 0 {
			return fmt.Errorf("it holds %v", held)
		}
		for name := range s.Pods("train") {
			if s.On(name) == lost {
				return fmt.Errorf("pod %s is on %s", name, lost)
			}
		}
		return nil
	}
	s.Until("nothing is to be on the lost node", gone)
	s.Says("train", phase, says)
	s.Sound()
	s.Never(time.Second, "nothing is on the lost node", gone)
}

// cordonIsNoLoss cordons the node of a rank and that of a spare: nothing happens.
func cordonIsNoLoss(s *Teller) {
	s.Nodes("d0", 4)
	s.Fund("", Envelope("all", 100))
	s.Submit("guarded", 16, InPods(8), InGroups(16), Spares(8))
	s.Says("guarded", rqv1.RunRunning, "bound 16 GPUs")
	before := s.Pods("guarded")
	for _, pod := range []string{"guarded-0", "guarded-s0"} {
		s.ChangeNode(s.On(pod), Cordoned)
	}
	s.Never(3*time.Second, "the pods are to stay", func() error {
		for name, pod := range s.Pods("guarded") {
			if pod.UID != before[name].UID {
				return fmt.Errorf("%s is another", name)
			}
		}
		return s.Still("guarded", rqv1.RunRunning, "bound 16 GPUs")()
	})
}

// requeuedKeepsItsRoom takes a node from a Run that cannot go on without it: a younger Run that waits does not get
// what the Run had besides, and it starts there again as soon as it can (R22).
func requeuedKeepsItsRoom(s *Teller) {
	s.Nodes("d0", 2)
	s.Fund("", Envelope("all", 100))
	s.Submit("old", 16, InPods(8), InGroups(16), Checkpointed(time.Minute))
	s.Says("old", rqv1.RunRunning, "bound 16 GPUs")
	s.Submit("young", 8)
	s.Says("young", rqv1.RunPending, "short by 8")
	lost, kept := s.On("old-0"), s.On("old-1")
	s.Lose(lost)
	s.Until("the Run is to be requeued, its room kept", func() error {
		run := s.Run("old")
		if run.Status.Phase != rqv1.RunPending || !meta.IsStatusConditionTrue(run.Status.Conditions, rqv1.ConditionRoomKept) {
			return fmt.Errorf("it is %s: %s", run.Status.Phase, run.Status.Message)
		}
		return nil
	})
	s.Never(3*time.Second, "the younger Run is to wait", s.Still("young", rqv1.RunPending, "short by 8"))
	s.Node("d0-2", "d0")
	s.Says("old", rqv1.RunRunning, "bound 16 GPUs")
	s.Holds("old", Places{kept: 8, "d0-2": 8})
	s.Says("young", rqv1.RunPending, "short by 8")
}

// nodeLostUnderADeletedRun has the pods of a Run that is deleted take their time to end: those on a node that is lost
// meanwhile are not waited for.
func nodeLostUnderADeletedRun(s *Teller) {
	s.Nodes("d0", 2)
	s.Fund("", Envelope("all", 100))
	s.Submit("slow", 16, InPods(8), Takes(600*time.Second, 10*time.Second))
	s.Says("slow", rqv1.RunRunning, "bound 16 GPUs")
	node := s.On("slow-0")
	s.Remove("slow")
	s.Until("its pods are to be told", func() error {
		for name, pod := range s.Pods("slow") {
			if pod.DeletionTimestamp == nil {
				return fmt.Errorf("%s is not", name)
			}
		}
		return nil
	})
	s.Lose(node)
	s.Until("only the pod on the lost node is to be gone", func() error {
		return differs([]string{"slow-1"}, sortedKeys(s.Pods("slow")))
	})
	s.ClosedAs("slow", rqv1.ClosedNodeFailure, 1)
	s.Same("it waits for the other still", []string{"slow-1"}, sortedKeys(s.Pods("slow")))
	s.Gone("slow")
	s.Ledger("slow", Leases{"NodeFailure": 1, "Deleted": 1})
}
