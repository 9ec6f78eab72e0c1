package story

import (
	"fmt"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// spareStories are of Runs with nodes that stand by.
func spareStories() []Story {
	return []Story{
		{Name: "spares", Play: sparesStandBy},
		{Name: "spares-need-room", Play: func(s *Teller) { sparesNeed(s, 2, 100, "short by 8") }},
		{Name: "spares-need-money", Play: func(s *Teller) { sparesNeed(s, 3, 16, "short by 8 of 24 GPUs") }},
		{Name: "spare-on-a-lost-node", Play: spareOnALostNode},
	}
}

// sparesStandBy starts a Run with a spare node in each group's domain, loses a spare, and completes: the Run goes on
// without it, another takes its place, and all that was held is given back.
func sparesStandBy(s *Teller) {
	s.Nodes("d0", 5)
	s.Nodes("d1", 5)
	s.Fund("", Envelope("all", 80))
	s.Submit("guarded", 64, InGroups(32), Spares(8), Templated(nothing))
	run := s.Says("guarded", rqv1.RunRunning, "bound 64 GPUs")
	s.Same("its width", &rqv1.RunWidth{Min: 64, Max: 64, Desired: 64, Granted: 64, Allocated: 64}, run.Status.Width)
	s.Sound()
	places := s.Held("guarded")
	s.Same("places of 8 ranks and 2 spares", 10, len(places)) // a node with both would have one entry more, and less GPUs
	for at, gpus := range places {
		s.Same("GPUs of "+at, int32(8), gpus)
	}

	before := s.Pods("guarded")
	s.DeletePod("guarded-s1")
	s.Remade("guarded", before, "guarded-s1")
	s.Says("guarded", rqv1.RunRunning, "bound 64 GPUs")
	s.Holds("guarded", places)
	s.Sound()

	s.Finish("guarded")
	s.Says("guarded", rqv1.RunCompleted, "all 8 pods completed")
	s.Ledger("guarded", Leases{"Completed": 10, "Deleted": 1})
	s.Until("no spare is left", func() error {
		for name, pod := range s.Pods("guarded") {
			if pod.Labels[rqv1.LabelRole] == string(rqv1.RoleSpare) {
				return fmt.Errorf("pod %s is", name)
			}
		}
		return nil
	})
}

// sparesNeed submits a Run that would fit without its spares: it waits whole.
func sparesNeed(s *Teller, nodes int, budget int32, says string) {
	s.Nodes("d0", nodes)
	s.Fund("", Envelope("all", budget))
	s.Submit("guarded", 16, InPods(8), Spares(8))
	s.Says("guarded", rqv1.RunPending, says)
	s.Nothing("guarded")
	s.Submit("plain", 16, InPods(8))
	s.Says("plain", rqv1.RunRunning, "bound 16 GPUs")
}

// spareOnALostNode deletes a spare's node: the Run goes on, and its spare comes back with the node.
func spareOnALostNode(s *Teller) {
	s.Nodes("d0", 3)
	s.Fund("", Envelope("all", 24))
	s.Submit("guarded", 16, InPods(8), Spares(8))
	s.Says("guarded", rqv1.RunRunning, "bound 16 GPUs")
	s.Sound()
	node := s.On("guarded-s0")
	s.RemoveNode(node)
	s.Ledger("guarded", Leases{"NodeFailure": 1, Open: 2})
	s.Says("guarded", rqv1.RunRunning, "bound 16 GPUs")
	s.Same("the spare's node", "", s.On("guarded-s0"))
	s.Node(node, "d0")
	s.Ledger("guarded", Leases{"NodeFailure": 1, Open: 3})
	s.Until("the spare is to be on its node", func() error { // the Lease comes before the binding
		if on := s.On("guarded-s0"); on != node {
			return fmt.Errorf("it is on %q", on)
		}
		return nil
	})
	s.Says("guarded", rqv1.RunRunning, "bound 16 GPUs")
}
