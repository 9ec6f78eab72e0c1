package story

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// comebackStories have the sign of every failure go again while the rank is being replaced: each rank runs once, nobody
// else is touched, and no GPU is lost for good. It is so, too, if the scheduler is killed in between.
func comebackStories() (all []Story) {
	args := map[string]any{"gangDeadline": "10m", "nodeLossGrace": "1m", "nodeLossLimit": "100%"}
	for name, c := range comebacks {
		for how, killed := range map[string]bool{"": false, "-killed": true} {
			all = append(all, Story{Name: "back-" + name + how, Args: args, Alone: "bindings are refused",
				Forgets: "what it was about to do when it dies, and that is what is held here",
				Play:    func(s *Teller) { comesBack(s, c, killed) }})
		}
	}
	return all
}

// comeback is a failure that costs the Run train a rank, and what takes it back. By then the rank's next pod is there
// and may not be bound yet.
type comeback struct {
	// start submits the Run and waits until it runs; nil for the usual one.
	start func(s *Teller)
	sign  func(s *Teller, node string)
	undo  func(s *Teller, node string)
	// leaves is nil unless the sign may be undone as soon as the rank has been told to go.
	leaves bool
	// after is done once the next pod may be bound.
	after func(s *Teller)
	// rank is the pod of the rank, train-1 unless it says so.
	rank string
	// own says that the rank has died because of its program, and all that every rank has.
	own, all bool
	// young says that the Run need not run when the sign comes.
	young bool
}

// usual starts a Run of two ranks and a spare.
func usual(s *Teller, changes ...RunChange) {
	s.T.Helper()
	s.Submit("train", 16, append([]RunChange{InPods(8), InGroups(16), Spares(8), Checkpointed(time.Hour)}, changes...)...)
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
}

// slowly starts it with pods that take some seconds to end.
func slowly(s *Teller) { usual(s, Takes(time.Minute, 3*time.Second)) }

func givenBack(s *Teller, node string) { s.ChangeNode(node, GivenBack) }

// evicted evicts a rank, as kubectl drain does; its kubelet says how it ended before it is gone.
func evicted(s *Teller, name string) {
	s.T.Helper()
	s.Until("the eviction of "+name, func() error { return s.Evict(name) })
	pod := s.pod(name)
	s.must(s.Change(pod, func() { Exits(143, "")(pod, metav1.NewTime(s.Now())) }))
}

// becomesReady has a pod that was never ready be so.
func becomesReady(s *Teller, name string) {
	s.T.Helper()
	s.Until(name+" is to run", func() error {
		if is := s.Pods("train")[name]; is == nil || is.Status.Phase != corev1.PodRunning || is.DeletionTimestamp != nil {
			return errors.New("it does not")
		}
		return nil
	})
	pod := s.pod(name)
	s.must(s.Change(pod, func() {
		for i := range pod.Status.Conditions {
			if c := &pod.Status.Conditions[i]; c.Status != corev1.ConditionTrue {
				c.Status, c.LastTransitionTime = corev1.ConditionTrue, metav1.NewTime(s.Now())
			}
		}
	}))
}

// comebacks are the failures by name.
var comebacks = map[string]comeback{
	"program": {own: true, start: func(s *Teller) {
		usual(s)
		before := s.Pods("train")
		s.Exit("train-1", Exits(7, "no such file"))
		s.Remade("train", before, "train-1")
		s.Says("train", rqv1.RunRunning, "restart 1 of 3")
	}, sign: func(s *Teller, node string) {
		s.Exit("train-1", Exits(7, "no such file"))
		s.ChangeNode(node, Cordoned)
	}, undo: givenBack},
	"two-owners": {rank: "train-0", own: true, start: func(s *Teller) {
		s.Submit("train", 4, InPods(4), Restarts(3, nil))
		s.Says("train", rqv1.RunRunning, "bound 4 GPUs")
		s.Submit("another", 4, InPods(4), s.By("another"), Restarts(3, nil))
		s.Says("another", rqv1.RunRunning, "bound 4 GPUs")
	}, sign: func(s *Teller, _ string) {
		s.Exit("train-0", Exits(1, "Xid 79"))
		s.Exit("another-0", Exits(1, "Xid 79"))
	}, undo: func(*Teller, string) {}},
	"at-the-start": {young: true, start: func(s *Teller) {
		s.Submit("train", 16, InPods(8), InGroups(16), Spares(8))
	}, sign: func(s *Teller, node string) {
		s.Exit("train-1", EndedFor("OutOfnvidia.com/gpu", ""))
		s.ChangeNode(node, allocates(0))
	}, undo: func(s *Teller, node string) { s.ChangeNode(node, allocates(8)) }},
	"shutdown": {sign: func(s *Teller, node string) {
		s.Exit("train-1", DisruptedBy("TerminationByKubelet", "Terminated"))
		s.ChangeNode(node, Shows(corev1.NodeReady, corev1.ConditionFalse))
	}, undo: func(s *Teller, node string) { s.ChangeNode(node, Shows(corev1.NodeReady, corev1.ConditionTrue)) }},
	"eviction": {start: slowly, sign: func(s *Teller, node string) {
		s.ChangeNode(node, Cordoned)
		evicted(s, "train-1")
	}, undo: givenBack},
	"turned-away": {sign: func(s *Teller, node string) {
		s.Exit("train-1", EndedFor("OutOfnvidia.com/gpu", "Node didn't have enough resource"))
		s.ChangeNode(node, allocates(0))
	}, undo: func(s *Teller, node string) { s.ChangeNode(node, allocates(8)) }},
	"device": {leaves: true, start: func(s *Teller) { usual(s, Takes(time.Minute, 15*time.Second)) },
		sign: func(s *Teller, _ string) { s.Exit("train-1", Health("GPU-7", corev1.ResourceHealthStatusUnhealthy)) },
		undo: func(s *Teller, _ string) {
			pod := s.pod("train-1")
			s.must(s.Change(pod, func() {
				Health("GPU-7", corev1.ResourceHealthStatusHealthy)(pod, metav1.NewTime(s.Now()))
			}))
		}},
	"all-ranks": {own: true, all: true, sign: func(s *Teller, node string) {
		s.Exit("train-0", Exits(1, "NCCL timeout"))
		s.Exit("train-1", Exits(1, "NCCL timeout"))
		s.ChangeNode(node, Cordoned)
	}, undo: givenBack},
	"never-ready": {own: true, start: func(s *Teller) { usual(s, NeverReady("train-1"), ReadyWithin(time.Minute)) },
		sign: func(*Teller, string) {}, undo: func(s *Teller, node string) {
			s.ChangeNode(node, Cordoned)
			s.ChangeNode(node, uncordoned)
		}, after: func(s *Teller) { becomesReady(s, "train-1") }},
	"maintenance": {start: slowly, sign: func(s *Teller, node string) {
		s.ChangeNode(node, maintained(s.Now()))
		evicted(s, "train-1")
	}, undo: func(s *Teller, node string) { s.ChangeNode(node, unmaintained) }},
	"spot": {start: slowly, sign: func(s *Teller, node string) {
		s.ChangeNode(node, Cordoned, Labelled("aws-node-termination-handler/action", "cordon-and-drain"),
			Tainted("aws-node-termination-handler/spot-itn", "i-0123456789", corev1.TaintEffectNoSchedule))
		evicted(s, "train-1")
	}, undo: givenBack},
	"nvsentinel": {sign: func(s *Teller, node string) {
		s.ChangeNode(node, quarantine)
		s.ChangeNode(node, Shows(fellOff, corev1.ConditionTrue))
	}, undo: func(s *Teller, node string) {
		s.ChangeNode(node, Shows(fellOff, corev1.ConditionFalse))
		s.ChangeNode(node, unquarantine(false))
	}},
	"silence": {sign: func(s *Teller, node string) { s.Silence(node) }, undo: func(s *Teller, node string) {
		s.Hear(node)
		givenBack(s, node)
	}},
	"not-ready": {sign: func(s *Teller, node string) {
		s.ChangeNode(node, Shows(corev1.NodeReady, corev1.ConditionFalse))
	}, undo: func(s *Teller, node string) {
		s.ChangeNode(node, Shows(corev1.NodeReady, corev1.ConditionTrue))
		givenBack(s, node)
	}},
	"out-of-service": {sign: func(s *Teller, node string) { s.Lose(node) }, undo: givenBack},
	"deleted": {sign: func(s *Teller, node string) { s.RemoveNode(node) },
		undo: func(s *Teller, node string) { s.Node(node, "d0") }},
}

// allocates has the kubelet of a node say how many GPUs its device plugin finds.
func allocates(count int64) NodeChange {
	return func(n *corev1.Node) { n.Status.Allocatable[gpuResource] = GPUs(count)[gpuResource] }
}

// unmaintained calls maintenance off.
func unmaintained(n *corev1.Node) {
	delete(n.Annotations, rqv1.AnnotationMaintenanceStart)
	delete(n.Annotations, rqv1.AnnotationMaintenanceEnd)
}

// comesBack has a failure befall a Run of two ranks and a spare on five nodes, of which another Run has one, while
// nothing can be bound, and has its sign go again before the rank's next pod is bound.
func comesBack(s *Teller, c comeback, killed bool) {
	s.Nodes("d0", 5)
	s.Fund("", Envelope("all", 100))
	s.Submit("other", 8, InPods(8))
	s.Says("other", rqv1.RunRunning, "bound 8 GPUs")
	others := s.Traces("other")
	if c.start == nil {
		c.start = func(s *Teller) { usual(s) }
	}
	if c.rank == "" {
		c.rank = "train-1"
	}
	c.start(s)
	node, before := "", Pods(nil)
	s.Until("the Run is to have all pods", func() error {
		node, before = s.On(c.rank), s.Pods("train")
		if node == "" || len(before) != 3 && c.rank != "train-0" {
			return fmt.Errorf("it has %d, %s is on %q", len(before), c.rank, node)
		}
		return nil
	})

	s.Hold(true)
	c.sign(s, node)
	s.Until("the rank is to be replaced", func() error {
		is := s.Pods("train")[c.rank]
		next := is != nil && is.UID != before[c.rank].UID
		if told := is != nil && is.DeletionTimestamp != nil; !next && !(c.leaves && told) {
			return fmt.Errorf("%s has no next pod", c.rank)
		}
		return nil
	})
	c.undo(s, node)
	if killed {
		s.Kill(func() { s.Hold(false) })
	} else {
		s.Hold(false)
	}
	if c.after != nil {
		c.after(s)
	}
	c.settles(s, before, node)
	s.Same("the other Run", others, s.Traces("other"))
	s.Until("the node is to be as any other", func() error { return s.back(node) })
}

// settles asserts that all is as it should be once the failure is over: every rank runs once, and a Run that takes all
// GPUs which are to be free has them.
func (c comeback) settles(s *Teller, before Pods, node string) {
	s.T.Helper()
	total := s.Run("train").Spec.Resources.TotalGPUs
	s.Until("every rank is to run once", func() error {
		is := s.Run("train").Status
		if is.Phase != rqv1.RunRunning || is.Width == nil || is.Width.Allocated != total || !c.own && is.Restarts != nil {
			return fmt.Errorf("it is %s: %s; it holds %+v, restarts %+v", is.Phase, is.Message, is.Width, is.Restarts)
		}
		pods := s.Pods("train")
		for name, pod := range pods {
			if pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
				return fmt.Errorf("%s is %s on %q", name, pod.Status.Phase, pod.Spec.NodeName)
			}
		}
		return differs(sortedKeys(before), sortedKeys(pods))
	})
	if !c.all && !c.young {
		for name, pod := range s.Pods("train") {
			if pod.Labels[rqv1.LabelRole] == string(rqv1.RoleActive) && name != c.rank {
				s.Same(name+" is the same", before[name].UID, pod.UID)
			}
		}
	}
	s.Sound()
	free := 5*8 - 8 - total
	for _, role := range s.Held("another") {
		free -= role
	}
	if before["train-s0"] != nil {
		free -= 8
	}
	s.Submit("next", free, InPods(min(free, 8)))
	s.Says("next", rqv1.RunRunning, fmt.Sprintf("bound %d GPUs", free))
}
