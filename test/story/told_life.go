package story

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// lifeStories are of how Runs start and end.
func lifeStories() []Story {
	return []Story{
		{Name: "run-starts", Play: runStarts},
		{Name: "run-completes", Play: runCompletes},
		{Name: "run-fails", Play: runFails},
		{Name: "ranks-know-who-they-are", Play: ranksKnow},
		{Name: "elastic-start", Play: elasticStart},
		{Name: "narrower-start", Play: narrowerStart},
		{Name: "narrower-in-one-domain", Play: narrowInOneDomain},
		{Name: "grow-and-shrink", Play: growAndShrink},
		{Name: "grow-as-budgets-allow", Play: growAsBudgetsAllow},
		{Name: "loan-is-given-back", Play: loanIsGivenBack},
		{Name: "growth-yields-to-a-promise", Args: soon("5s"), Play: growthYields},
		{Name: "finished-runs-go", Args: map[string]any{"finishedRunTTL": "5s"}, Alone: "the scheduler is killed",
			Play: finishedRunsGo},
		{Name: "terminating-pods-hold-gpus", Play: terminatingPodsHold},
	}
}

// runStarts looks at all that a user sees of a Run that runs.
func runStarts(s *Teller) {
	for d := range 4 {
		s.Nodes(fmt.Sprint("d", d), 4)
	}
	s.Fund("", Envelope("all", 128))
	s.Submit("wide", 96, InGroups(32))
	run := s.Says("wide", rqv1.RunRunning, "bound 96 GPUs")
	got := *run.Status.DeepCopy()
	got.Conditions, got.Ready = nil, 0 // the latter is told with anything else, or after a while
	s.Same("its status", rqv1.RunStatus{
		ObservedGeneration: 1, Phase: rqv1.RunRunning, Message: "bound 96 GPUs",
		GPUsPerPod: 8, Width: &rqv1.RunWidth{Min: 96, Max: 96, Desired: 96, Granted: 96, Allocated: 96},
		Funding: &rqv1.RunFundingStatus{OwnedGPUs: 96},
	}, got)
	s.Same("it has started, and not finished", []bool{true, false},
		[]bool{meta.IsStatusConditionTrue(run.Status.Conditions, rqv1.ConditionStarted),
			meta.IsStatusConditionTrue(run.Status.Conditions, rqv1.ConditionFinished)})
	s.Same("how many dates it had", 0, len(s.Reservations("wide")))
	leases := s.World().LeasesOf("wide")
	s.Same("how many Leases it has", 12, len(leases))
	for _, l := range leases {
		s.Same("Lease "+l.Name, rqv1.LeaseSpec{
			Owner: s.Owner(""), RunRef: rqv1.LeaseRunRef{Name: "wide", Namespace: run.Namespace, UID: run.UID},
			GroupIndex: l.Spec.GroupIndex, Slice: rqv1.LeaseSlice{
				Role: rqv1.RoleActive, Nodes: []rqv1.NodeGPUs{{Name: l.Node(), GPUs: 8}},
			},
			Payer:          rqv1.LeasePayer{Budget: s.BudgetName(""), Owner: s.Owner(""), Relation: rqv1.RelationOwn, Rate: "1"},
			PaidByEnvelope: "all", Flavor: s.site.Flavor,
			Reason: rqv1.ReasonStart, Start: l.Spec.Start,
		}, l.Spec)
	}
}

// runCompletes has pods succeed: the Run completes, and its Leases outlive it.
func runCompletes(s *Teller) {
	s.Nodes("d0", 2)
	s.Fund("", Envelope("all", 16))
	s.Submit("short", 16, InPods(4), Succeeds(time.Second))
	run := s.Says("short", rqv1.RunCompleted, "all 4 pods completed")
	s.Same("it has finished", true, meta.IsStatusConditionTrue(run.Status.Conditions, rqv1.ConditionFinished))
	s.Same("GPUs that it has", int32(0), run.Status.Width.Allocated)
	s.Sound()
	s.Remove("short")
	s.Gone("short")
	s.Ledger("short", Leases{"Completed": 4})
}

// runFails has one pod of several fail: the others end, the Run says which failed and how, and all Leases close.
func runFails(s *Teller) {
	s.Nodes("d0", 2)
	s.Fund("", Envelope("all", 16))
	s.Submit("doomed", 16, InPods(4))
	s.Says("doomed", rqv1.RunRunning, "bound 16 GPUs")
	s.Exit("doomed-2", Exits(1, ""))
	s.Says("doomed", rqv1.RunFailed, "pod doomed-2 failed: container pause exited with code 1")
	s.Ledger("doomed", Leases{"Failed": 4})
	s.Submit("next", 16)
	s.Says("next", rqv1.RunRunning, "bound 16 GPUs")
}

// ranksKnow compares what every rank is told of itself and of the others.
func ranksKnow(s *Teller) {
	s.Nodes("d0", 1)
	s.Nodes("d1", 1)
	s.Fund("", Envelope("all", 16))
	s.Submit("ranks", 8, InPods(2), InGroups(4), Env("MASTER_PORT", "4242"))
	run := s.Says("ranks", rqv1.RunRunning, "bound 8 GPUs")
	for i := range 4 {
		pod, rank := s.Pods("ranks")[fmt.Sprintf("ranks-%d", i)], fmt.Sprint(i)
		want := map[string]string{
			"RANK": rank, "WORLD_SIZE": "4", "MASTER_ADDR": "ranks-0.ranks", "MASTER_PORT": "4242",
			"PET_NNODES": "4", "PET_NODE_RANK": rank, "PET_NPROC_PER_NODE": "2",
			"PET_MASTER_ADDR": "ranks-0.ranks", "PET_MASTER_PORT": "29500",
			"PET_RDZV_ENDPOINT": "ranks-0.ranks:29500", "PET_RDZV_ID": string(run.UID),
			"JOBTREE_RUN": "ranks", "JOBTREE_GROUP_INDEX": fmt.Sprint(i / 2), "JOBTREE_EPOCH": "0",
			"TORCHELASTIC_RESTART_COUNT": "0",
		}
		got := map[string]string{}
		for _, v := range pod.Spec.Containers[0].Env {
			got[v.Name] = Told(pod, v.Name)
		}
		s.Same("what rank "+rank+" is told", want, got)
		s.Same("labels of rank "+rank, map[string]string{
			rqv1.LabelRun: "ranks", rqv1.LabelIndex: rank, rqv1.LabelGroupIndex: fmt.Sprint(i / 2),
			rqv1.LabelCohort: "0", rqv1.LabelRole: "Active", rqv1.LabelEpoch: "0", rqv1.LabelRunUID: string(run.UID),
		}, pod.Labels)
		owner := metav1.GetControllerOf(pod)
		s.Same("rank "+rank+" has a controller", true, owner != nil)
		s.Same("who owns rank "+rank, run.UID, owner.UID)
	}
}

// elasticStart starts a Run that may be wider than its total, or narrower, at its total, and then has it grow. Its
// ranks are told between which numbers of nodes it may be.
func elasticStart(s *Teller) {
	s.Nodes("d0", 4)
	s.Fund("", Envelope("all", 64))
	s.Submit("elastic", 16, Elastic(8, 32, 4), Templated(nothing))
	run := s.Says("elastic", rqv1.RunRunning, "bound 16 GPUs")
	w := run.Status.Width
	s.Same("its width", []int32{8, 32, 32, 16}, []int32{w.Min, w.Max, w.Desired, w.Allocated})
	s.Says("elastic", rqv1.RunRunning, "grew to 32 GPUs")
	s.Opened("elastic", map[rqv1.LeaseReason]int{rqv1.ReasonStart: 4, rqv1.ReasonGrow: 4})
	for name, pod := range s.Pods("elastic") {
		s.Same("between how many nodes "+name+" may be", "2:8", Told(pod, "PET_NNODES"))
	}
}

// narrowerStart starts a Run of 16 to 32 GPUs where 24 are free: it starts at 24, says so, and its other pods go.
// Every rank is told that there are three, the leader too, which is made before the width is known.
func narrowerStart(s *Teller) {
	s.Nodes("d0", 3)
	s.Fund("", Envelope("all", 64))
	s.Submit("narrow", 32, InGroups(8), Elastic(16, 32, 8), Templated(nothing))
	run := s.Says("narrow", rqv1.RunRunning, "bound 24 GPUs")
	s.Same("GPUs that its owner pays", int32(24), run.Status.Funding.OwnedGPUs)
	s.Width("narrow", rqv1.RunWidth{Min: 16, Max: 32, Desired: 32, Granted: 24, Allocated: 24,
		Lacks: rqv1.LacksGPUs})
	s.Until("the surplus pod is to go", func() error {
		if pods := s.Pods("narrow"); len(pods) != 3 {
			return fmt.Errorf("there are %d pods", len(pods))
		}
		return nil
	})
	for name, pod := range s.Pods("narrow") {
		s.Same("how many ranks "+name+" is told of", "3", Told(pod, "WORLD_SIZE"))
	}
	s.Ledger("narrow", Leases{Open: 3})
	s.Finish("narrow")
	s.Says("narrow", rqv1.RunCompleted, "all 3 pods completed")
}

// narrowInOneDomain has a Run start with what its one domain has room for, say that it would be wider, and grow when
// that domain has room, whatever is free in others (as a PodGroup with a topology constraint does).
func narrowInOneDomain(s *Teller) {
	s.Nodes("d0", 2)
	s.Nodes("d1", 3)
	s.Fund("", Envelope("all", 64))
	s.Submit("other", 16, InPods(8), InGroups(16))
	s.Says("other", rqv1.RunRunning, "bound 16 GPUs")
	s.Holds("other", Places{"d0-0": 8, "d0-1": 8})
	s.Submit("beside", 8, InPods(8))
	s.Says("beside", rqv1.RunRunning, "bound 8 GPUs")
	s.Submit("near", 24, InPods(8), Elastic(16, 24, 8), InOneDomain)
	run := s.Says("near", rqv1.RunRunning, "bound 16 GPUs")
	s.Same("the width that it would have", int32(24), run.Status.Width.Desired)
	s.Remove("other")
	s.Same("GPUs of who is to lie in one domain", int32(16), s.Run("near").Status.Width.Allocated)
	s.Remove("beside")
	s.Says("near", rqv1.RunRunning, "grew to 24 GPUs")
	s.Holds("near", Places{"d1-0": 8, "d1-1": 8, "d1-2": 8})
}

// growAndShrink is worked example 4: a Run of 96 GPUs grows to 160 by two cohorts, and gives 64 GPUs back when it is
// told to.
func growAndShrink(s *Teller) {
	s.Nodes("d0", 20)
	s.Fund("", Envelope("all", 160))
	s.Submit("train", 96, InGroups(32), Elastic(96, 160, 32))
	s.Says("train", rqv1.RunRunning, "grew to 160 GPUs")
	s.Width("train", rqv1.RunWidth{Min: 96, Max: 160, Desired: 160, Granted: 160, Allocated: 160})
	s.Sound()
	got := map[string]int{}
	for _, l := range s.World().LeasesOf("train") {
		got[fmt.Sprintf("cohort %d: %s", l.Spec.Cohort, l.Spec.Reason)]++
	}
	s.Same("the Leases by cohort", map[string]int{"cohort 0: Start": 12, "cohort 1: Grow": 4, "cohort 2: Grow": 4}, got)
	s.Edit("train", Desires(96))
	s.Says("train", rqv1.RunRunning, "shrunk to 96 GPUs")
	s.Width("train", rqv1.RunWidth{Min: 96, Max: 160, Desired: 96, Granted: 96, Allocated: 96})
	s.Ledger("train", Leases{Open: 12, "Shrink": 8})
	s.Sound()
	s.Same("what it said", []string{
		"bound 96 GPUs", "bound 96 GPUs, Grow to 128", "grew to 128 GPUs", "grew to 128 GPUs, Grow to 160",
		"grew to 160 GPUs", "shrunk to 96 GPUs, Shrink to 96", "shrunk to 96 GPUs",
	}, s.Said("train"))
}

// growAsBudgetsAllow has a Run desire more than its Budget allows, and then more than nodes have: it says what it
// lacks.
func growAsBudgetsAllow(s *Teller) {
	s.Nodes("d0", 3)
	s.Fund("", Envelope("all", 16))
	s.Submit("train", 8, InPods(8), Elastic(8, 32, 8))
	s.Says("train", rqv1.RunRunning, "grew to 16 GPUs; short of what Budgets allow to grow to 32")
	s.Width("train", rqv1.RunWidth{Min: 8, Max: 32, Desired: 32, Granted: 16, Allocated: 16, Lacks: rqv1.LacksMoney})
	s.Fund("", Envelope("all", 64))
	s.Says("train", rqv1.RunRunning, "grew to 24 GPUs; short of free GPUs to grow to 32")
	s.Width("train", rqv1.RunWidth{Min: 8, Max: 32, Desired: 32, Granted: 24, Allocated: 24, Lacks: rqv1.LacksGPUs})
	s.Node("d0-3", "d0")
	s.Says("train", rqv1.RunRunning, "grew to 32 GPUs")
	s.Width("train", rqv1.RunWidth{Min: 8, Max: 32, Desired: 32, Granted: 32, Allocated: 32})
}

// loanIsGivenBack has a Run grow to four times its total on an idle fleet. A Run that comes then starts within the
// notice, and not at the date on which others would be cut for it.
func loanIsGivenBack(s *Teller) {
	s.Nodes("d0", 4)
	s.Fund("", Envelope("all", 64))
	s.Submit("lender", 8, InGroups(8), Elastic(8, 32, 8))
	s.Says("lender", rqv1.RunRunning, "grew to 32 GPUs")
	s.Submit("starter", 8)
	s.Says("starter", rqv1.RunRunning, "bound 8 GPUs")
	s.Says("lender", rqv1.RunRunning, "shrunk to 24 GPUs")
	r := s.Promised("starter", rqv1.ReservationReleased)
	s.Same("how many are cut, and drawn", []int{1, 0}, []int{len(r.Status.Cuts), len(r.Status.Lottery.Draws)})
	s.Same("what is done", rqv1.CutReturn, r.Status.Cuts[0].Action)
	s.Same("to which width", int32(24), *r.Status.Cuts[0].Width)
}

// growthYields has a Run desire room that another is promised: it does not take it, gives up a step for the other, and
// does not take that back.
func growthYields(s *Teller) {
	s.Nodes("d0", 4)
	s.Fund("a", Envelope("all", 64))
	s.Fund("b", Envelope("all", 64))
	s.Submit("train", 16, s.By("a"), InGroups(8), Elastic(8, 32, 8), Desires(16))
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	s.Submit("big", 24, s.By("b"))
	s.Promised("big", rqv1.ReservationPending)
	s.Edit("train", Desires(32))
	s.Says("big", rqv1.RunRunning, "bound 24 GPUs")
	s.Says("train", rqv1.RunRunning, "shrunk to 8 GPUs")
	s.Never(3*time.Second, "what is promised is not taken back", func() error {
		if w := s.Run("train").Status.Width; w.Growing > 0 {
			return fmt.Errorf("width %+v", w)
		}
		return nil
	})
	s.Ledger("train", Leases{Open: 1, "Shrink": 1})
	for _, line := range s.Said("train") {
		if line == "grew to 24 GPUs" || line == "bound 16 GPUs, Grow to 24" {
			s.Errorf("it said: %s", line)
		}
	}
}

// finishedRunsGo has Runs go when their time is over: their own, that of the configuration, or one that they were
// given since they ended, whatever the scheduler went through meanwhile. Who paid for them stays known.
func finishedRunsGo(s *Teller) {
	s.Nodes("d0", 1, WithGPUs(32)) // one node: with several it would be chance which Run is where
	s.Fund("", Envelope("all", 32))
	brief := Succeeds(time.Second)
	s.Submit("soon", 8, brief, StaysFor(0))
	s.Submit("later", 8, brief)
	s.Submit("edited", 8, brief, StaysFor(3600))
	s.Submit("stays", 8, brief, StaysFor(3600))
	ended := s.Says("later", rqv1.RunCompleted, "completed")
	s.Kill()
	s.Says("edited", rqv1.RunCompleted, "completed")
	s.Says("stays", rqv1.RunCompleted, "completed")
	s.Gone("soon", "later")
	if at, _ := ended.FinishedAt(); s.Now().Sub(at) < 5*time.Second {
		s.Errorf("a Run is gone %s after its end", s.Now().Sub(at))
	}
	s.Edit("edited", StaysFor(1))
	s.Gone("edited")
	s.Says("stays", rqv1.RunCompleted, "completed")
	for _, run := range []string{"soon", "later", "edited", "stays"} {
		s.Ledger(run, Leases{"Completed": 1})
	}
	s.Submit("later", 32) // its name and its GPUs are free
	s.Says("later", rqv1.RunRunning, "bound 32 GPUs")
}

// terminatingPodsHold deletes a Run whose pods take seconds to end: the next Run waits for them.
func terminatingPodsHold(s *Teller) {
	s.Nodes("d0", 1)
	s.Fund("", Envelope("all", 100))
	s.Submit("slow", 8, Takes(30*time.Second, 4*time.Second))
	s.Says("slow", rqv1.RunRunning, "bound 8 GPUs")
	s.Remove("slow")
	s.Submit("next", 8)
	s.Says("next", rqv1.RunPending, "short by 8")
	s.Until("the next Run is to start once the pods are gone", func() error {
		w := s.World()
		err := s.said(w.Run("next"), rqv1.RunRunning, nil)
		if left := w.PodsOf("slow"); err == nil && len(left) > 0 {
			s.Errorf("the next Run started beside %d pods that terminate", len(left))
		}
		return err
	})
}
