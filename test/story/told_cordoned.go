package story

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// cordonedStories are of ranks whose node takes no pods for a moment.
func cordonedStories() []Story {
	return []Story{
		{Name: "evicted-from-a-cordoned-node", Play: backOnceUncordoned},
		{Name: "evicted-from-a-cordoned-node-for-good", Play: endsOnceNotUncordoned},
		{Name: "evicted-from-a-cordoned-node-elastic", Play: narrowerWhileCordoned},
		{Name: "cordoned-beside-a-lower", Play: nobodyEndsForACordon},
		{Name: "cordoned-for-good-beside-a-lower", Play: aLowerEndsOnceNotUncordoned},
		{Name: "cordoned-elastic-beside-a-lower", Play: narrowerBesideALower},
		{Name: "tainted-beside-a-lower", Play: nobodyEndsForATaint},
		{Name: "cordoned-both-and-room-for-one", Play: bothCordonedAndRoomForOne},
		{Name: "cordoned-and-another-lost", Play: func(s *Teller) { anotherIsLostMeanwhile(s) }},
		{Name: "cordoned-and-another-lost-with-a-spare", Play: func(s *Teller) { anotherIsLostMeanwhile(s, Spares(8)) }},
	}
}

// evictedFromCordoned has somebody cordon a node of a Run that has no other, and evict the rank there. A younger Run
// waits for room.
func evictedFromCordoned(s *Teller, changes ...RunChange) (node string) {
	s.Nodes("d0", 2)
	s.Fund("", Envelope("all", 100))
	s.Submit("train", 16, append(changes, InPods(8))...)
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	s.Submit("younger", 8, InPods(8))
	s.Says("younger", rqv1.RunPending, "short by 8")
	s.Later(2 * time.Second) // when a Run has started is known in whole seconds
	node = s.On("train-1")
	s.ChangeNode(node, Cordoned)
	s.EvictPod("train-1")
	return node
}

// backOnceUncordoned: the rank waits for its node, which comes back in time, and has its place before anybody younger.
func backOnceUncordoned(s *Teller) {
	node := evictedFromCordoned(s)
	s.Never(20*time.Second, "the Run is to wait", func() error {
		return s.said(s.Run("train"), rqv1.RunRunning, nil)
	})
	s.Says("train", rqv1.RunRunning, "node "+node+", where a rank was, takes no pods now")
	s.ChangeNode(node, GivenBack)
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	s.Same("its node", node, s.On("train-1"))
	s.Ledger("train", Leases{"Evicted": 1, Open: 2})
	s.Says("younger", rqv1.RunPending, "short by 8")
}

// endsOnceNotUncordoned: the node is not waited for without end.
func endsOnceNotUncordoned(s *Teller) {
	evictedFromCordoned(s)
	s.Says("train", rqv1.RunFailed)
	s.Says("younger", rqv1.RunRunning, "bound 8 GPUs")
}

// narrowerWhileCordoned: a Run that may be narrower goes on at once.
func narrowerWhileCordoned(s *Teller) {
	evictedFromCordoned(s, Elastic(8, 16, 8))
	s.Says("train", rqv1.RunRunning, "8 GPUs")
	s.Ledger("train", Leases{"Evicted": 1, Open: 1})
}

// besideALower has a Run of high priority run beside one of its owner's of lower priority on all nodes there are.
func besideALower(s *Teller, changes ...RunChange) {
	s.Nodes("d0", 3)
	s.Fund("", Envelope("all", 100))
	s.twoClasses()
	s.Submit("hero", 16, append(changes, InPods(8), s.OfClass("high"))...)
	s.Says("hero", rqv1.RunRunning, "bound 16 GPUs")
	s.Submit("batch", 8, InPods(8), s.OfClass("low"))
	s.Says("batch", rqv1.RunRunning, "bound 8 GPUs")
	s.Later(2 * time.Second)
}

// waitsBesideALower has the rank of a Run of high priority wait for its cordoned node, and its owner's other Run go on.
func waitsBesideALower(s *Teller) (before Pods, node string) {
	besideALower(s)
	before, node = s.Pods("hero"), s.On("hero-1")
	s.ChangeNode(node, Cordoned)
	s.EvictPod("hero-1")
	s.Says("hero", rqv1.RunRunning, "node "+node+", where a rank was, takes no pods now", "short by 8")
	s.Never(20*time.Second, "the other Run is to go on", s.Still("batch", rqv1.RunRunning, "bound 8 GPUs"))
	return before, node
}

// nobodyEndsForACordon: the rank goes back once the node serves again, and nobody has ended.
func nobodyEndsForACordon(s *Teller) {
	before, node := waitsBesideALower(s)
	s.ChangeNode(node, GivenBack)
	s.Remade("hero", before, "hero-1")
	s.Says("hero", rqv1.RunRunning, "bound 16 GPUs")
	s.Same("its node", node, s.On("hero-1"))
	s.Says("batch", rqv1.RunRunning, "bound 8 GPUs")
	s.Ledger("batch", Leases{Open: 1})
}

// aLowerEndsOnceNotUncordoned: the node is not waited for without end.
func aLowerEndsOnceNotUncordoned(s *Teller) {
	before, _ := waitsBesideALower(s)
	s.Remade("hero", before, "hero-1")
	s.Says("hero", rqv1.RunRunning, "bound 16 GPUs")
	s.Says("batch", rqv1.RunFailed)
	s.Ledger("batch", Leases{"PriorityPreempt": 1})
}

// narrowerBesideALower: a Run that may be narrower goes on at once, and nobody ends for it.
func narrowerBesideALower(s *Teller) {
	besideALower(s, Elastic(8, 16, 8))
	node := s.On("hero-1")
	s.ChangeNode(node, Cordoned)
	s.EvictPod("hero-1")
	s.Says("hero", rqv1.RunRunning, "8 GPUs")
	s.ChangeNode(node, GivenBack)
	s.Says("hero", rqv1.RunRunning, "16 GPUs")
	s.Ledger("batch", Leases{Open: 1})
}

// nobodyEndsForATaint: a taint that comes and goes ends nobody but the rank that it evicts.
func nobodyEndsForATaint(s *Teller) {
	besideALower(s)
	before, node := s.Pods("hero"), s.On("hero-0")
	s.ChangeNode(node, Tainted("example.com/looked-at", "", corev1.TaintEffectNoExecute))
	s.Says("hero", rqv1.RunRunning, "node "+node+", where a rank was, takes no pods now")
	s.ChangeNode(node, GivenBack)
	s.Remade("hero", before, "hero-0")
	s.Says("hero", rqv1.RunRunning, "bound 16 GPUs")
	s.Same("its node", node, s.On("hero-0"))
	s.Says("batch", rqv1.RunRunning, "bound 8 GPUs")
}

// anotherIsLostMeanwhile: a rank waits for its cordoned node, and a rank of another group loses its own, which has a
// spare or other room in its domain: it goes there, and the first goes on waiting.
func anotherIsLostMeanwhile(s *Teller, changes ...RunChange) {
	s.Nodes("d0", 2+len(changes))
	s.Nodes("d1", 3)
	s.Fund("", Envelope("all", 100))
	s.Submit("train", 32, append(changes, InPods(8), InGroups(16))...)
	s.Says("train", rqv1.RunRunning, "bound 32 GPUs")
	s.Later(2 * time.Second)
	waits, loses := "train-1", "train-3"
	if len(changes) == 0 && s.IsNode(s.On(waits)).Labels["fabric.domain"] != s.full("d0") {
		waits, loses = loses, waits // its domain has no other node
	}
	if len(changes) > 0 { // its group has no spare any more
		s.Lose(s.On("train-s0"))
		s.Ledger("train", Leases{"NodeFailure": 1, Open: 5})
	}
	node := s.On(waits)
	s.ChangeNode(node, Cordoned)
	s.EvictPod(waits)
	s.Says("train", rqv1.RunRunning, "node "+node+", where a rank was, takes no pods now")
	lost := s.On(loses)
	s.Lose(lost)
	s.Until("the other rank is to be on another node", func() error {
		if on := s.On(loses); on == "" || on == lost {
			return fmt.Errorf("it is on %q", on)
		}
		return nil
	})
	s.Says("train", rqv1.RunRunning, "node "+node+", where a rank was, takes no pods now")
	s.ChangeNode(node, GivenBack)
	s.Says("train", rqv1.RunRunning)
	s.Until("all ranks are to run", func() error {
		if width := s.Run("train").Status.Width; width.Allocated != 32 || s.On(waits) != node {
			return fmt.Errorf("it has %d GPUs", width.Allocated)
		}
		return nil
	})
}

// bothCordonedAndRoomForOne: two ranks wait for their cordoned nodes, and room comes about for one: it goes there, and
// the other goes on waiting.
func bothCordonedAndRoomForOne(s *Teller) {
	s.Nodes("d0", 3)
	s.Fund("", Envelope("all", 100))
	s.Submit("other", 8, InPods(8))
	s.Says("other", rqv1.RunRunning, "bound 8 GPUs")
	s.Submit("train", 16, InPods(8))
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	s.Later(2 * time.Second)
	free, nodes := s.On("other-0"), []string{s.On("train-0"), s.On("train-1")}
	before := s.Pods("train")
	for i, node := range nodes {
		s.ChangeNode(node, Cordoned)
		s.EvictPod(fmt.Sprintf("train-%d", i))
	}
	s.Ledger("train", Leases{"Evicted": 2})
	s.Remove("other")
	s.Until("the first rank is to be where there is room", func() error { return differs(free, s.On("train-0")) })
	s.Says("train", rqv1.RunRunning, "node "+nodes[1]+", where a rank was, takes no pods now")
	s.ChangeNode(nodes[1], GivenBack)
	s.Remade("train", before, "train-0", "train-1")
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	s.Same("the node of the other", nodes[1], s.On("train-1"))
}
