package story

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// vanishStories are of pods that somebody deletes by force, whose containers do not end by that.
func vanishStories() []Story {
	forgets := "that a pod was deleted by force, until its Lease says so"
	return []Story{
		{Name: "vanished-and-elsewhere", Forgets: forgets, Play: vanishedAndElsewhere},
		{Name: "vanished-and-back", Forgets: forgets, Play: vanishedAndBack},
		{Name: "vanished-and-another-lost", Forgets: forgets, Play: vanishedAndAnotherLost},
		{Name: "vanished-with-its-run", Forgets: forgets, Play: func(s *Teller) {
			vanishedForGood(s, func() { s.Remove("train") })
		}},
		{Name: "vanished-and-suspended", Forgets: forgets, Play: func(s *Teller) {
			vanishedForGood(s, func() { s.Edit("train", Suspended) })
		}},
		{Name: "vanished-and-killed", Alone: "it kills the scheduler", Forgets: forgets, Play: func(s *Teller) {
			vanishedForGood(s, func() {
				s.Remove("train")
				s.Kill()
			})
		}},
		{Name: "vanished-and-lost", Forgets: forgets, Play: vanishedAndLost},
	}
}

// vanishing is how long containers of the pods that vanish may run.
const vanishing = 8 * time.Second

// Vanish has somebody delete a pod by force that its kubelet has taken.
func (s *Teller) Vanish(name string) (node string) {
	s.T.Helper()
	s.Until("pod "+name+" is to run", func() error {
		for _, pod := range s.World().Pods {
			if pod.Name == name && pod.Status.Phase == corev1.PodRunning {
				node = s.short(pod.Spec.NodeName)
				return nil
			}
		}
		return fmt.Errorf("it does not")
	})
	s.DeletePodByForce(name)
	return node
}

// outlives waits until a Lease of a Run says that containers may run of its pod, which is gone.
func (s *Teller) outlives(run string) {
	s.T.Helper()
	s.Until("a Lease of "+run+" is to say that containers of its pod may run", func() error {
		for _, lease := range s.World().LeasesOf(run) {
			if by := lease.Status.EndsBy; by != nil && !lease.Status.Closed {
				return nil
			}
		}
		return fmt.Errorf("none does")
	})
}

// bindsAfter waits until a pod is bound where one of Run train has vanished: not while the Lease of that is open.
func (s *Teller) bindsAfter(pod string) {
	s.T.Helper()
	s.Until(pod+" is to be bound once the containers have ended", func() error {
		w := s.World()
		for _, is := range w.Pods {
			if is.Name != pod || is.Spec.NodeName == "" {
				continue
			}
			for _, lease := range w.LeasesOf("train") {
				if !lease.Status.Closed && lease.Status.EndsBy != nil {
					s.Errorf("%s is bound, and the Lease of the pod that has vanished is open", pod)
				}
			}
			return nil
		}
		return fmt.Errorf("it is not")
	})
}

// vanishedAndElsewhere: the rank goes on elsewhere at once, and another Run gets the GPUs that it had when its
// containers have ended.
func vanishedAndElsewhere(s *Teller) {
	s.Nodes("d0", 2)
	s.Fund("", Envelope("all", 100))
	s.Submit("train", 8, Takes(vanishing, 0))
	s.Says("train", rqv1.RunRunning, "bound 8 GPUs")
	before := s.Pods("train")
	node := s.Vanish("train-0")
	s.Remade("train", before, "train-0")
	s.Says("train", rqv1.RunRunning, "bound 8 GPUs")
	s.Same("the rank is where it was", false, s.On("train-0") == node)
	s.Submit("next", 8)
	s.Says("next", rqv1.RunPending, "short by 8")
	s.bindsAfter("next-0")
	s.Same("what the next Run has", Places{node: 8}, s.Held("next"))
	s.Ledger("train", Leases{Open: 1, "Deleted": 1})
}

// vanishedAndBack: where there is no other room the rank waits for its own, and nobody else is given that.
func vanishedAndBack(s *Teller) {
	s.Nodes("d0", 1)
	s.Fund("", Envelope("all", 100))
	s.Submit("train", 8, Takes(vanishing, 0))
	s.Says("train", rqv1.RunRunning, "bound 8 GPUs")
	s.Submit("next", 8)
	s.Says("next", rqv1.RunPending, "short by 8")
	before := s.Pods("train")
	s.Vanish("train-0")
	s.outlives("train")
	s.bindsAfter("train-0")
	s.Remade("train", before, "train-0")
	s.Says("train", rqv1.RunRunning, "bound 8 GPUs")
	s.Ledger("train", Leases{Open: 1, "Deleted": 1})
	s.Says("next", rqv1.RunPending, "short by 8")
}

// vanishedAndAnotherLost: while a rank waits for its own room, one of another group is lost, which has other room.
func vanishedAndAnotherLost(s *Teller) {
	s.Nodes("d0", 2)
	s.Nodes("d1", 3)
	s.Fund("", Envelope("all", 100))
	s.Submit("train", 32, InPods(8), InGroups(16), Takes(time.Minute, 0))
	s.Says("train", rqv1.RunRunning, "bound 32 GPUs")
	s.Later(2 * time.Second)
	waits, loses := "train-0", "train-2"
	if s.IsNode(s.On(waits)).Labels["fabric.domain"] != s.full("d0") {
		waits, loses = loses, waits // its domain has no other node
	}
	before, lost := s.Pods("train"), s.On(loses)
	node := s.Vanish(waits)
	s.outlives("train")
	s.Says("train", rqv1.RunRunning, "replacing 1 of 4 pods: a pod was deleted by force")
	s.Lose(lost)
	s.Until("the other rank is to be on another node", func() error {
		if on := s.On(loses); on == "" || on == lost {
			return fmt.Errorf("it is on %q", on)
		}
		return nil
	})
	s.Says("train", rqv1.RunRunning, "replacing 1 of 4 pods: a pod was deleted by force")
	s.bindsAfter(waits)
	s.Remade("train", before, "train-0", "train-2")
	s.Until("all ranks are to run", func() error { return differs(int32(32), s.Run("train").Status.Width.Allocated) })
	s.Same("the node of the first", node, s.On(waits))
}

// vanishedForGood has the Run of such a pod want its GPUs no more: nobody else has them sooner by that.
func vanishedForGood(s *Teller, ends func()) {
	s.Nodes("d0", 1)
	s.Fund("", Envelope("all", 100))
	s.Submit("train", 8, Takes(vanishing, 0))
	s.Says("train", rqv1.RunRunning, "bound 8 GPUs")
	s.Submit("next", 8)
	s.Says("next", rqv1.RunPending, "short by 8")
	s.Vanish("train-0")
	s.outlives("train")
	ends()
	s.bindsAfter("next-0")
}

// vanishedAndLost: of a node that is lost nothing is waited for.
func vanishedAndLost(s *Teller) {
	s.Nodes("d0", 2)
	s.Fund("", Envelope("all", 100))
	s.Submit("train", 8, Takes(10*time.Minute, 0))
	s.Says("train", rqv1.RunRunning, "bound 8 GPUs")
	before := s.Pods("train")
	node := s.Vanish("train-0")
	s.Remade("train", before, "train-0")
	s.Says("train", rqv1.RunRunning, "bound 8 GPUs")
	s.Ledger("train", Leases{Open: 2})
	s.Lose(node)
	s.Ledger("train", Leases{Open: 1, "NodeFailure": 1})
}
