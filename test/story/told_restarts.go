package story

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// restartStories are of programs that die.
func restartStories() []Story {
	stories := []Story{
		{Name: "restart-in-place", Play: restartWhereItWas},
		{Name: "restart-poison-program", Play: poisonProgram},
		{Name: "restart-no-other-node", Play: noOtherNode},
		{Name: "restart-all-together", Play: allDieTogether},
		{Name: "restart-exit-codes", Play: exitCodes},
		{Name: "restart-by-kubelet", Play: restartedByKubelet},
	}
	for i := range stories {
		stories[i].Forgets = "that it has restarted a rank, which is the last that it tells"
	}
	return stories
}

// restarted waits until all ranks of a Run run again, with a message that holds texts.
func (s *Teller) restarted(name string, texts ...string) *rqv1.Run {
	s.T.Helper()
	s.Says(name, rqv1.RunRunning, texts...)
	s.Until("all of Run "+name+" is to run again", func() error {
		run := s.Run(name)
		tells := run.Status.Restarts
		if tells == nil || tells.Ready == nil || run.Status.Width.Allocated != run.Spec.Resources.TotalGPUs {
			return fmt.Errorf("it has %d GPUs; %+v", run.Status.Width.Allocated, tells)
		}
		return nil
	})
	return s.Run(name)
}

// restartWhereItWas has a rank die on a fleet that is full, with somebody waiting for what it holds: it goes on there.
func restartWhereItWas(s *Teller) {
	s.Nodes("d0", 3)
	s.Fund("", Envelope("all", 100))
	s.Submit("train", 24, InPods(8), Checkpointed(time.Hour))
	s.Says("train", rqv1.RunRunning, "bound 24 GPUs")
	s.Submit("rival", 8, InPods(8))
	s.Says("rival", rqv1.RunPending)
	before, held := s.Pods("train"), s.Held("train")
	node := s.Exit("train-1", Exits(1, "CUDA error: device-side assert"))
	run := s.restarted("train", "rank 1 restarted (restart 1 of 3)", "rank 1 ended on node "+node,
		"exit code 1): CUDA error: device-side assert")
	s.Remade("train", before, "train-1")
	s.Same("its nodes", held, s.Held("train"))
	s.Same("the rank's node", node, s.On("train-1"))
	again := s.Pods("train")["train-1"]
	for name, want := range map[string]string{"JOBTREE_EPOCH": "1", "TORCHELASTIC_RESTART_COUNT": "1", "RANK": "1"} {
		s.Same(name, want, Told(again, name))
	}
	s.Ledger("train", Leases{"Failed": 1, Open: 3})
	s.Opened("train", map[rqv1.LeaseReason]int{rqv1.ReasonStart: 2, rqv1.ReasonRestart: 1})
	s.Deaths("train", "rank 1 on "+node+": Program")
	s.Same("it died first, and restarts", []any{true, rqv1.ActionRestart},
		[]any{run.Status.Deaths[0].First, run.Status.Deaths[0].Action})
	s.Says("rival", rqv1.RunPending)
}

// poisonProgram dies wherever it is, again and again: its spare is tried, and the Run says what has come of it.
func poisonProgram(s *Teller) {
	s.Nodes("d0", 4)
	s.Fund("", Envelope("all", 100))
	s.Submit("poison", 16, InPods(8), InGroups(16), Spares(8), Checkpointed(time.Hour), Restarts(2, nil))
	s.Says("poison", rqv1.RunRunning, "bound 16 GPUs")
	spare, dies := s.On("poison-s0"), Exits(7, "no such file")
	first := s.Exit("poison-1", dies)
	s.restarted("poison", "rank 1 restarted (restart 1 of 2)")
	s.Same("where it died again", first, s.Exit("poison-1", dies))
	s.restarted("poison", "group 0 swapped to spare after a rank died again on node "+first)
	s.Same("where it died last", spare, s.Exit("poison-1", dies))
	run := s.Says("poison", rqv1.RunFailed, "rank 1 died on node "+spare+": Error (container pause, exit code 7): no "+
		"such file; it was the first to die 3 times, on "+first+" (twice), "+spare)
	s.Same("restarts that count", int32(3), run.Status.Restarts.Counted)
}

// noOtherNode has a rank that dies again stay where it is, since no other node is free.
func noOtherNode(s *Teller) {
	s.Nodes("d0", 2)
	s.Fund("", Envelope("all", 100))
	s.Submit("train", 16, InPods(8), Checkpointed(time.Hour), Restarts(5, nil))
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	first := s.Exit("train-0", Exits(1, ""))
	s.restarted("train", "restart 1 of 5")
	s.Same("where it died again", first, s.Exit("train-0", Exits(1, "")))
	s.restarted("train", "restart 2 of 5")
	s.Same("where it is", first, s.On("train-0"))
}

// allDieTogether restarts all ranks where they were, twice.
func allDieTogether(s *Teller) {
	s.Nodes("d0", 5)
	s.Fund("", Envelope("all", 100))
	s.Submit("train", 24, InPods(8), InGroups(24), Spares(8), Checkpointed(time.Hour))
	s.Says("train", rqv1.RunRunning, "bound 24 GPUs")
	for round := range 2 {
		held := s.Held("train")
		for rank := range 3 {
			s.Exit(fmt.Sprintf("train-%d", rank), Exits(1, "NCCL timeout"))
		}
		s.restarted("train", fmt.Sprintf("3 ranks restarted (restart %d of 3) after rank", round+1))
		s.Same("its nodes", held, s.Held("train"))
	}
}

// exitCodes has a program say that another try would be of no use, or that its node is bad.
func exitCodes(s *Teller) {
	s.Nodes("d0", 4)
	s.Fund("", Envelope("all", 100))
	codes := map[string]rqv1.RestartAction{"42": rqv1.ActionFail, "43": rqv1.ActionMove}
	for _, name := range []string{"moves", "fails"} {
		s.Submit(name, 8, InPods(8), Checkpointed(time.Hour), Restarts(3, codes))
		s.Says(name, rqv1.RunRunning, "bound 8 GPUs")
	}
	bad := s.Exit("moves-0", Exits(43, "ECC error"))
	s.restarted("moves", "rank 0 restarted (restart 1 of 3)")
	s.Same("it is where it was", false, s.On("moves-0") == bad)
	s.Exit("fails-0", Exits(42, "bad configuration"))
	s.Says("fails", rqv1.RunFailed, "runtime.restarts.onExitCodes says Fail for exit code 42, so the Run does not restart")
}

// restartedByKubelet has a kubelet restart a rank, as the template says: that counts as a death, and the second time
// the rank moves.
func restartedByKubelet(s *Teller) {
	s.Nodes("d0", 3)
	s.Fund("", Envelope("all", 100))
	s.Submit("train", 16, InPods(8), Checkpointed(time.Hour), Restarts(2, nil),
		Templated(func(of *corev1.PodTemplateSpec) { of.Spec.RestartPolicy = corev1.RestartPolicyOnFailure }))
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	first := s.Exit("train-1", StartsAgain(1))
	run := s.restarted("train", "bound 16 GPUs")
	s.Same("restarts that count, and that its kubelet made", []int32{1, 1},
		[]int32{run.Status.Restarts.Counted, run.Status.Deaths[0].Restarts})
	s.Exit("train-1", StartsAgain(2))
	s.restarted("train", "rank 1 restarted (restart 2 of 2)")
	s.Same("it is where it was", false, s.On("train-1") == first)
	s.Ledger("train", Leases{"Failed": 1, Open: 2})
	s.Exit("train-1", StartsAgain(1))
	s.Says("train", rqv1.RunFailed, "which is its limit")
}
