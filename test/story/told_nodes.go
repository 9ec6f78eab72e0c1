package story

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// nodeStories are of what becomes of ranks whose nodes are lost, or no longer what they were.
func nodeStories() []Story {
	return []Story{
		{Name: "lost-node-narrows", Play: lostNodeNarrows},
		{Name: "no-cpu-but-a-spare", Play: noCPUButASpare},
		{Name: "no-cpu-anywhere", Play: noCPUAnywhere},
		{Name: "no-cpu-so-narrower", Play: noCPUSoNarrower},
		{Name: "label-removed", Play: func(s *Teller) { labelsRemoved(s, func() {}, "train-1") }},
		{Name: "labels-removed", Play: func(s *Teller) { labelsRemoved(s, func() {}, "train-0", "train-1", "train-2") }},
		{Name: "labels-removed-killed", Alone: "the scheduler is killed", Play: func(s *Teller) {
			labelsRemoved(s, func() { s.Kill() }, "train-0", "train-1", "train-2")
		}},
		{Name: "spot-notice-evicts", Play: func(s *Teller) { spotNotice(s, takenBackByEviction) }},
		{Name: "spot-notice-shuts-down", Play: func(s *Teller) { spotNotice(s, takenBackByShutdown) }},
	}
}

// lostNodeNarrows loses a node under a Run that fills its domain and may be narrower: it gives up its highest step,
// whose GPUs the lost rank gets.
func lostNodeNarrows(s *Teller) {
	s.Nodes("d0", 3)
	s.Fund("", Envelope("all", 100))
	s.Submit("elastic", 24, InPods(8), Elastic(8, 24, 8))
	s.Says("elastic", rqv1.RunRunning, "bound 24 GPUs")
	s.Sound()
	highest := s.On("elastic-2")
	s.Lose(s.On("elastic-0"))
	s.Says("elastic", rqv1.RunRunning, "shrunk to 16 GPUs")
	s.Sits("elastic-0", highest)
	s.Same("how many pods there are", 2, len(s.Pods("elastic")))
	s.Ledger("elastic", Leases{Open: 2, "NodeFailure": 1, "Shrink": 1})
}

// Sits waits until a pod is on a node.
func (s *Teller) Sits(pod, node string) {
	s.T.Helper()
	s.Until(pod+" is to be on "+node, func() error { return differs(node, s.On(pod)) })
}

// crowd takes nearly all processors of nodes, and none of their GPUs.
func (s *Teller) crowd(nodes ...string) {
	s.T.Helper()
	for _, node := range nodes {
		s.Occupy("crowd-"+node, node, CPUs(63))
	}
}

// unused are nodes of a domain of four on which a Run holds nothing.
func (s *Teller) unused(run string) (out []string) {
	held := s.Held(run)
	for i := range 4 {
		if node := fmt.Sprintf("d0-%d", i); held[node]+held[node+" Spare"] == 0 {
			out = append(out, node)
		}
	}
	return out
}

// wanting has each pod of a Run ask for processors.
func wanting(count int64) RunChange {
	return Templated(func(of *corev1.PodTemplateSpec) {
		of.Spec.Containers[0].Resources.Requests = CPUs(count)
	})
}

// guarded starts a Run of two ranks with a spare on four nodes.
func (s *Teller) guarded(changes ...RunChange) {
	s.T.Helper()
	s.Nodes("d0", 4)
	s.Fund("", Envelope("all", 100))
	s.Submit("train", 16, append(changes, InPods(8), InGroups(16), Spares(8))...)
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	s.Sound()
}

// noCPUButASpare loses a rank where the only node with free GPUs has no CPU: the spare of its group serves.
func noCPUButASpare(s *Teller) {
	s.guarded(wanting(4))
	s.crowd(s.unused("train")...)
	spare := s.On("train-s0")
	s.ChangeNode(s.On("train-0"), Cordoned)
	s.DeletePod("train-0")
	s.Sits("train-0", spare)
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
}

// noCPUAnywhere loses a rank where no node has CPU for it, nor that of the spare: the Run ends.
func noCPUAnywhere(s *Teller) {
	s.guarded(wanting(4))
	s.crowd("d0-0", "d0-1", "d0-2", "d0-3")
	s.ChangeNode(s.On("train-0"), Cordoned)
	s.DeletePod("train-0")
	s.Says("train", rqv1.RunFailed, "rejected by other scheduling rules, such as")
}

// noCPUSoNarrower loses a rank of a Run that may be narrower, and the only free node has no CPU: it goes on narrower.
func noCPUSoNarrower(s *Teller) {
	s.Nodes("d0", 4)
	s.Fund("", Envelope("all", 100))
	s.Submit("train", 24, InPods(8), wanting(4), Elastic(8, 24, 8))
	s.Says("train", rqv1.RunRunning, "bound 24 GPUs")
	s.crowd(s.unused("train")...)
	s.Lose(s.On("train-1"))
	s.Says("train", rqv1.RunRunning, "shrunk to 16 GPUs")
}

// labelsRemoved takes the topology label off nodes of ranks of a Run that runs, and then one of its nodes away: the
// lost rank is replaced where its group lies, whether the process that finds it lost has seen the labels or not.
func labelsRemoved(s *Teller, meanwhile func(), ranks ...string) {
	s.Nodes("d0", 4)
	s.Nodes("d1", 4)
	s.Fund("", Envelope("all", 100))
	s.Submit("train", 24, InPods(8), InGroups(24))
	s.Says("train", rqv1.RunRunning, "bound 24 GPUs")
	lost := s.On("train-0")
	domain, _, _ := strings.Cut(lost, "-")
	for _, rank := range ranks {
		s.ChangeNode(s.On(rank), Without("fabric.domain"))
	}
	meanwhile()
	s.Lose(lost)
	s.Until("the rank is to be replaced in its group's domain", func() error {
		if on := s.On("train-0"); on == lost || !strings.HasPrefix(on, domain+"-") {
			return fmt.Errorf("it is on %q, its group in %s", on, domain)
		}
		return nil
	})
	s.Says("train", rqv1.RunRunning, "bound 24 GPUs")
}

// takenBackByEviction is what aws-node-termination-handler does to a node at a spot interruption notice: it cordons and
// taints the node, and evicts what is there.
func takenBackByEviction(s *Teller, node string) {
	s.ChangeNode(node, Cordoned, Labelled("aws-node-termination-handler/action", "cordon-and-drain"),
		Tainted("aws-node-termination-handler/spot-itn", "i-0123456789", corev1.TaintEffectNoSchedule))
	s.Until("the eviction", func() error { return s.Evict("train-1") })
}

// takenBackByShutdown is what GKE does: a taint, then the kubelet shuts the node down gracefully.
func takenBackByShutdown(s *Teller, node string) {
	s.ChangeNode(node, Tainted("cloud.google.com/impending-node-termination", "", corev1.TaintEffectNoSchedule))
	s.Exit("train-1", DisruptedBy("TerminationByKubelet", "Terminated"))
	s.ChangeNode(node, Shows(corev1.NodeReady, corev1.ConditionFalse))
}

// spotNotice has a cloud take a node back: the rank goes elsewhere before the node is gone, and nothing counts against
// the Run. Without a checkpoint it has no restart to spend.
func spotNotice(s *Teller, notice func(*Teller, string)) {
	s.guarded(Takes(time.Minute, 3*time.Second))
	before, node := s.Pods("train"), s.On("train-1")
	notice(s, node)
	s.Until("the rank is to be on another node", func() error {
		if on := s.On("train-1"); on == "" || on == node {
			return fmt.Errorf("it is on %q", on)
		}
		return nil
	})
	s.RemoveNode(node)
	s.Until("the Run is to be whole, and to have a spare", func() error {
		run := s.Run("train")
		if run.Status.Phase != rqv1.RunRunning || run.Status.Width.Allocated != 16 {
			return fmt.Errorf("it is %s: %s", run.Status.Phase, run.Status.Message)
		}
		if run.Status.Restarts != nil || slices.ContainsFunc(run.Status.Deaths, func(d rqv1.RunDeath) bool {
			return d.Cause != rqv1.CauseNode
		}) {
			return fmt.Errorf("it counts: %+v, %+v", run.Status.Restarts, run.Status.Deaths)
		}
		if on := s.On("train-s0"); on == "" || on == node {
			return fmt.Errorf("the spare is on %q", on)
		}
		return nil
	})
	s.Same("the other rank", before["train-0"].UID, s.Pods("train")["train-0"].UID)
}
