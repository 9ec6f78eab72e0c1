package story

import (
	"fmt"
	"strings"
	"time"

	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// priorityStories are of Runs with PriorityClasses, which order those of one owner.
func priorityStories() []Story {
	return []Story{
		{Name: "swap-onto-a-lower-priority", Play: func(s *Teller) {
			swapOntoALower(s, "it declares no checkpoint", rqv1.RunFailed)
		}},
		{Name: "swap-onto-a-lower-priority-that-waits", Play: func(s *Teller) {
			swapOntoALower(s, "", rqv1.RunPending, Checkpointed(10*time.Minute))
		}},
		{Name: "swap-onto-a-lower-priority-without-lots", Args: map[string]any{"lottery": "None"}, Play: func(s *Teller) {
			swapOntoALower(s, "", rqv1.RunPending, Checkpointed(10*time.Minute))
		}},
		{Name: "priority-classes-come-and-go", Play: classesComeAndGo},
		{Name: "queue-of-one-owner", Play: queueOfOneOwner},
	}
}

// Class makes a PriorityClass, and RemoveClass deletes it.
func (s *Teller) Class(name string, value int32) {
	s.T.Helper()
	s.must(s.Create(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: s.full(name)}, Value: value}))
}

// RemoveClass deletes a PriorityClass.
func (s *Teller) RemoveClass(name string) {
	s.T.Helper()
	s.must(s.Delete(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: s.full(name)}}))
}

// OfClass gives a Run a PriorityClass.
func (s *Teller) OfClass(name string) RunChange {
	return func(r *rqv1.Run) { r.Spec.PriorityClassName = s.full(name) }
}

// twoClasses makes the PriorityClasses high and low.
func (s *Teller) twoClasses() {
	s.T.Helper()
	s.Class("high", 2000000)
	s.Class("low", 1000000)
}

// swapOntoALower is what users of two PriorityClasses expect: there is neither a spare nor an idle node, a node under
// the Run of high priority fails, and its rank goes on where the Run of low priority was.
func swapOntoALower(s *Teller, says string, phase rqv1.RunPhase, changes ...RunChange) {
	s.Nodes("d0", 5)
	s.Fund("", Envelope("all", 100))
	s.twoClasses()
	s.Submit("hero", 24, InPods(8), s.OfClass("high"))
	s.Submit("batch", 16, append(changes, InPods(8), s.OfClass("low"))...)
	s.Says("hero", rqv1.RunRunning, "bound 24 GPUs")
	s.Says("batch", rqv1.RunRunning, "bound 16 GPUs")
	s.Same("the priorities", []int32{2000000, 1000000},
		[]int32{*s.Run("hero").Status.Priority, *s.Run("batch").Status.Priority})
	s.Later(2 * time.Second)
	before, batch := s.Pods("hero"), s.Held("batch")
	s.Lose(s.On("hero-1"))
	s.Remade("hero", before, "hero-1")
	s.Same("GPUs that batch had where the rank is", int32(8), batch[s.On("hero-1")])
	s.Says("batch", phase, says)
	s.Ledger("batch", Leases{"PriorityPreempt": 2})
	s.Ledger("hero", Leases{Open: 3, "NodeFailure": 1})
	s.Until("it is told for whom it gave way", func() error {
		for _, e := range s.World().Events {
			if e.Kind == "Run" && e.Name == "batch" && strings.Contains(e.Note, "lost rank of Run "+s.site.Namespace+"/hero") {
				return nil
			}
		}
		return fmt.Errorf("it is not")
	})
}

// classesComeAndGo has a Run name a class that does not exist: a condition says so until there is the class, whose
// value follows.
func classesComeAndGo(s *Teller) {
	s.Nodes("d0", 1)
	s.Fund("", Envelope("all", 100))
	s.Submit("early", 8, InPods(8), s.OfClass("late"))
	has := func(missing bool, priority int32) {
		s.T.Helper()
		s.Until(fmt.Sprintf("missing %v, priority %d", missing, priority), func() error {
			is := s.Run("early").Status
			got := meta.IsStatusConditionTrue(is.Conditions, rqv1.ConditionPriorityClassMissing)
			if got != missing || is.Priority == nil || *is.Priority != priority {
				return fmt.Errorf("missing %v, status %+v", got, is)
			}
			return nil
		})
	}
	has(true, 0)
	s.Class("late", 7)
	has(false, 7)
	s.RemoveClass("late")
	has(true, 0)
	s.Class("late", -3)
	has(false, -3)
	s.Same("the class of its pod", "", s.Pods("early")["early-0"].Spec.PriorityClassName)
}

// queueOfOneOwner has Runs of two owners wait for one node. The one of high priority starts from the place of its
// owner's of low priority, which has its place then, behind the other owner's.
func queueOfOneOwner(s *Teller) {
	s.Nodes("d0", 1)
	s.Fund("", Envelope("all", 100))
	s.twoClasses()
	s.Fund("rival", Envelope("all", 8))
	s.holder()
	waits := func(name string, changes ...RunChange) {
		s.T.Helper()
		s.Submit(name, 8, changes...)
		s.Says(name, rqv1.RunPending, "short by 8")
		s.Later(time.Second) // ages are in whole seconds
	}
	waits("batch", s.OfClass("low"))
	waits("rival", s.By("rival"))
	waits("hero", s.OfClass("high"))
	s.Remove("holder")
	hero := s.Says("hero", rqv1.RunRunning, "bound 8 GPUs")
	s.Until("batch has hero's place", func() error {
		is := s.Run("batch").Status
		if is.PlaceSince == nil || !is.PlaceSince.Equal(&hero.CreationTimestamp) {
			return fmt.Errorf("it has its place since %v, and hero was made at %v", is.PlaceSince, hero.CreationTimestamp)
		}
		return nil
	})
	s.Remove("hero")
	s.Says("rival", rqv1.RunRunning, "bound 8 GPUs")
	s.Says("batch", rqv1.RunPending)
	s.Remove("rival")
	s.Says("batch", rqv1.RunRunning, "bound 8 GPUs")
}
