package story

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// endedByNodes are all ways in which kubelets tell that a node has ended a pod, or turned it away.
var endedByNodes = map[string]Ending{
	"graceful-shutdown": DisruptedBy("TerminationByKubelet", "Terminated"),
	"pressure":          DisruptedBy("TerminationByKubelet", "Evicted"),
	"shutting-down":     EndedFor("NodeShutdown", "Pod was rejected as the node is shutting down."),
	"devices":           EndedFor("OutOfnvidia.com/gpu", "Node didn't have enough resource"),
	"plugin":            EndedFor("UnexpectedAdmissionError", "Allocate failed"),
}

// halfAnHour is why stories that wait until evictions are forgotten are Long.
const halfAnHour = "it takes half an hour until three evictions are forgotten"

// byWhomDeleted is what nothing tells of once a pod is gone.
const byWhomDeleted = "by whom pods were deleted that are gone by then"

// evictedStories are of nodes that end ranks.
func evictedStories() (all []Story) {
	for name, how := range endedByNodes {
		all = append(all, Story{Name: "evicted-" + name, Play: func(s *Teller) { rankEndedByItsNode(s, how) }},
			Story{Name: "evicted-" + name + "-and-back", Play: func(s *Teller) {
				backWhereItWas(s, func(s *Teller) { s.Exit("train-0", how) })
			}})
	}
	return append(all,
		Story{Name: "evicted-by-people-and-back", Play: func(s *Teller) {
			backWhereItWas(s, func(s *Teller) { s.EvictPod("train-0") })
		}},
		Story{Name: "evicted-by-people-and-a-spare", Long: halfAnHour,
			Play: func(s *Teller) { backBeforeASpare(s, Spares(8)) }},
		Story{Name: "evicted-by-people-and-a-free-node", Long: halfAnHour, Play: func(s *Teller) { backBeforeASpare(s) }},
		Story{Name: "evicted-elastic", Play: backBeforeItShrinks},
		Story{Name: "evicted-twice-by-people", Forgets: byWhomDeleted, Play: awayAfterTwoEvictions},
		Story{Name: "evicted-at-the-start", Play: badNodeAtTheStart},
		Story{Name: "evicted-again-and-again", Play: rankThatNoNodeKeeps},
		Story{Name: "device-unhealthy", Play: unhealthyDevice},
		Story{Name: "tainted-nodes", Forgets: byWhomDeleted, Play: taintOnManyNodes})
}

// rankEndedByItsNode has a node end a rank. Its spare takes its place, and the Run goes on: no node is lost, and nobody
// cordons one.
func rankEndedByItsNode(s *Teller, how Ending) {
	s.Nodes("d0", 4)
	s.Fund("", Envelope("all", 100))
	s.Submit("train", 16, InPods(8), InGroups(16), Spares(8))
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	before, spare := s.Pods("train"), s.On("train-s0")
	node := s.Exit("train-0", how)
	s.Says("train", rqv1.RunRunning, "group 0 swapped to spare after node "+node+" ended a rank")
	s.Same("the rank's node", spare, s.On("train-0"))
	s.Ledger("train", Leases{"Evicted": 1, "Swap": 1, Open: 3})
	s.Remade("train", before, "train-0", "train-s0")
	s.Deaths("train", "rank 0 on "+node+": Node")
	s.Same("the node is cordoned", false, s.IsNode(node).Spec.Unschedulable)
}

// badNodeAtTheStart has one node turn away what is bound to it, as it says that it has more devices than it has. The
// gang starts without it.
func badNodeAtTheStart(s *Teller) {
	s.Nodes("d0", 4)
	s.Fund("", Envelope("all", 100))
	s.Submit("train", 24, InPods(8))
	bad := s.Exit("train-0", EndedFor("OutOfnvidia.com/gpu", ""))
	s.Until("the Run is to run on the other nodes", func() error {
		run, held := s.Run("train"), s.Held("train")
		if run.Status.Phase != rqv1.RunRunning || len(held) != 3 || held[bad] > 0 {
			return fmt.Errorf("it is %s (%s) on %v", run.Status.Phase, run.Status.Message, held)
		}
		return nil
	})
}

// rankThatNoNodeKeeps is turned away by three nodes: the Run says so, and takes no more of them.
func rankThatNoNodeKeeps(s *Teller) {
	s.Nodes("d0", 5)
	s.Fund("", Envelope("all", 100))
	s.Submit("train", 8, InPods(8), Checkpointed(time.Hour))
	var seen []string
	for range 3 {
		node := s.Exit("train-0", EndedFor("UnexpectedAdmissionError", "no such device"))
		s.Same("it was on the node before", false, slices.Contains(seen, node))
		seen = append(seen, node)
	}
	s.Says("train", rqv1.RunFailed, "rank 0 was ended or rejected by 3 nodes within 1h0m0s")
}

// backWhereItWas has a rank be ended where there is no other place: it goes back there before anybody younger, its Run
// runs on, and so does the other rank.
func backWhereItWas(s *Teller, ends func(*Teller)) {
	s.Nodes("d0", 2)
	s.Fund("", Envelope("all", 100))
	s.Submit("train", 16, InPods(8))
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	s.Submit("younger", 8, InPods(8))
	s.Says("younger", rqv1.RunPending, "short by 8")
	before, node := s.Pods("train"), s.On("train-0")
	ends(s)
	s.Remade("train", before, "train-0")
	s.Says("train", rqv1.RunRunning, "")
	s.Same("its node", node, s.On("train-0"))
	s.Ledger("train", Leases{"Evicted": 1, Open: 2})
	s.Says("younger", rqv1.RunPending, "short by 8")
}

// backBeforeASpare has somebody evict a rank from a node that is in service, in the Run's first minute; cordon a node,
// evict the rank that is there and uncordon it before the rank has gone; and taint a node for a moment. Each time the
// rank goes back to its node, although there is a spare, or another node: the node has done nothing.
func backBeforeASpare(s *Teller, changes ...RunChange) {
	s.Nodes("d0", 4)
	s.Fund("", Envelope("all", 100))
	s.Submit("train", 16, append(changes, InPods(8), InGroups(16), Takes(time.Minute, 3*time.Second))...)
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	taint := "example.com/looked-at"
	for i, people := range []struct{ leave, back func(node string) }{
		{func(string) { s.EvictPod("train-0") }, func(string) {}},
		{func(node string) {
			s.ChangeNode(node, Cordoned)
			s.Until("the eviction", func() error { return s.Evict("train-1") })
		}, func(node string) { s.ChangeNode(node, GivenBack) }},
		{func(node string) { s.ChangeNode(node, Tainted(taint, "", corev1.TaintEffectNoExecute)) },
			func(node string) { s.ChangeNode(node, GivenBack) }},
	} {
		name := []string{"train-0", "train-1", "train-0"}[i]
		before, node := s.Pods("train"), s.On(name)
		people.leave(node)
		s.Until(name+" is to have been told to go", func() error {
			if pod := s.Pods("train")[name]; pod != nil && pod.UID == before[name].UID && pod.DeletionTimestamp == nil {
				return fmt.Errorf("it has not")
			}
			return nil
		})
		people.back(node)
		s.Remade("train", before, name)
		s.Says("train", rqv1.RunRunning)
		s.Same("its node", node, s.On(name))
		s.Later(10 * time.Minute)
	}
	s.Ledger("train", Leases{"Evicted": 3, Open: len(s.Pods("train"))})
}

// backBeforeItShrinks has the node of an elastic Run's rank turn it away where there is no other: it does not shrink.
func backBeforeItShrinks(s *Teller) {
	s.Nodes("d0", 2)
	s.Fund("", Envelope("all", 100))
	s.Submit("train", 16, InPods(8), Elastic(8, 16, 8))
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	before := s.Pods("train")
	node := s.Exit("train-1", endedByNodes["plugin"])
	s.Remade("train", before, "train-1")
	s.Says("train", rqv1.RunRunning, "")
	s.Same("its node", node, s.On("train-1"))
	s.Ledger("train", Leases{"Evicted": 1, Open: 2})
}

// awayAfterTwoEvictions has somebody evict a rank twice within ten minutes from the same node: once may be for whatever
// reason, twice is about that node, and it is avoided.
func awayAfterTwoEvictions(s *Teller) {
	s.Nodes("d0", 1)
	s.Fund("", Envelope("all", 100))
	s.Submit("train", 8, InPods(8))
	s.Says("train", rqv1.RunRunning, "bound 8 GPUs")
	before := s.Pods("train")
	s.EvictPod("train-0")
	s.Remade("train", before, "train-0")
	s.Node("d0-1", "d0")
	before = s.Pods("train")
	s.EvictPod("train-0")
	s.Remade("train", before, "train-0")
	s.Same("its node", "d0-1", s.On("train-0"))
	s.Ledger("train", Leases{"Evicted": 2, Open: 1})
}

// unhealthyDevice has a device of a rank turn unhealthy: that rank moves, and nobody else on its node.
func unhealthyDevice(s *Teller) {
	s.Nodes("d0", 4)
	s.Fund("", Envelope("all", 100))
	s.Submit("other", 4, InPods(4))
	s.Says("other", rqv1.RunRunning, "bound 4 GPUs")
	s.Submit("train", 8, InPods(4), InGroups(8), Spares(4))
	s.Says("train", rqv1.RunRunning, "bound 8 GPUs")
	before, others, spare := s.Pods("train"), s.Pods("other"), s.On("train-s0")
	s.Exit("train-1", Health("GPU-7", corev1.ResourceHealthStatusUnknown))
	node := s.Exit("train-0", Health("GPU-7", corev1.ResourceHealthStatusUnhealthy))
	run := s.Says("train", rqv1.RunRunning, "group 0 swapped to spare after node "+node+" ended a rank (Unhealthy)")
	s.Same("the rank's node", spare, s.On("train-0"))
	s.Remade("train", before, "train-0", "train-s0") // there is room for another spare
	s.Remade("other", others)
	s.Same("what the Run tells of", "nvidia.com/gpu GPU-7", run.Status.Deaths[0].Message)
	s.Same("how many deaths", 1, len(run.Status.Deaths))
	s.Ledger("train", Leases{"Evicted": 1, "Swap": 1, Open: 3})
	s.Same("the node is cordoned", false, s.IsNode(node).Spec.Unschedulable)
}

// taintOnManyNodes has somebody taint all nodes of a Run with effect NoExecute, as before a row of racks is switched
// off: more of its ranks are evicted than a status tells of. Each of them is lost by its node's doing and goes to
// another node, and the Run goes on.
func taintOnManyNodes(s *Teller) {
	const ranks = rqv1.MostDeaths + 4
	s.Nodes("d0", 2*ranks)
	s.Fund("", Envelope("all", 8*ranks))
	s.Submit("train", 8*ranks, InPods(8))
	s.Says("train", rqv1.RunRunning, fmt.Sprintf("bound %d GPUs", 8*ranks))
	tainted := s.Held("train")
	for _, node := range sortedKeys(tainted) {
		s.ChangeNode(node, Tainted("example.com/outage", "row-7", corev1.TaintEffectNoExecute))
	}
	s.Ledger("train", Leases{"Evicted": ranks, Open: ranks})
	s.Until("all ranks are to be on other nodes", func() error {
		for node := range s.Held("train") {
			if tainted[node] > 0 {
				return fmt.Errorf("one is on %s", node)
			}
		}
		return nil
	})
	for _, l := range s.World().LeasesOf("train") {
		if l.Status.Closed {
			s.Same("by whose doing a Lease has closed", rqv1.CauseNode, l.Status.Cause)
		}
	}
	s.Says("train", rqv1.RunRunning)
	for node := range tainted {
		s.Same("the node is cordoned", false, s.IsNode(node).Spec.Unschedulable)
	}
}
