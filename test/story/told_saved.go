package story

import (
	"fmt"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// savedStories are of work that is lost, and of work that is not because it was saved.
func savedStories() []Story {
	return []Story{
		{Name: "saved-work-is-not-lost", Play: savedWorkIsNotLost},
		{Name: "lost-work-by-cause", Play: lostWorkByCause},
	}
}

// Saves has a Run's program say that it has saved its work at an instant.
func Saves(at time.Time) RunChange {
	return func(r *rqv1.Run) {
		if r.Annotations == nil {
			r.Annotations = map[string]string{}
		}
		r.Annotations[rqv1.AnnotationSavedAt] = at.UTC().Format(time.RFC3339)
	}
}

// savedWorkIsNotLost has a Run say when it saved its work before a rank of it dies: what it did since is lost, and no
// more.
func savedWorkIsNotLost(s *Teller) {
	s.Nodes("d0", 3)
	s.Fund("", Envelope("all", 100))
	s.Submit("train", 16, InPods(8), Checkpointed(time.Hour))
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	started := s.Now()
	s.Later(3 * time.Second)
	s.Edit("train", Saves(s.Now()))
	s.Later(2 * time.Second)
	s.Exit("train-1", Exits(1, ""))
	s.Told("Run", "train", "Running", "restart 1 of 3")
	s.Ledger("train", Leases{Open: 2, "Failed": 1})
	took := s.Now().Sub(started)
	var lost *rqv1.LeaseLost
	for _, l := range s.World().LeasesOf("train") {
		if l.Status.Closed {
			lost = l.Status.Lost
		}
	}
	// When work was saved is told in whole seconds.
	if lost == nil || lost.GPUSeconds < 8 || lost.GPUSeconds > int64(8*(took-2*time.Second)/time.Second) ||
		lost.OthersGPUSeconds != lost.GPUSeconds {
		s.Errorf("the Lease tells of %+v lost, after %s", lost, took)
	}
}

// lostWorkByCause has a program, a node and a user lose work of a Run: the Leases tell of each.
func lostWorkByCause(s *Teller) {
	s.Nodes("d0", 4)
	s.Fund("", Envelope("all", 100))
	s.Submit("train", 16, InPods(8), Checkpointed(time.Hour))
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	s.Later(2 * time.Second)
	s.Exit("train-1", Exits(1, ""))
	s.Told("Run", "train", "Running", "restart 1 of 3")
	s.Later(2 * time.Second)
	node := s.Exit("train-0", DisruptedBy("TerminationByKubelet", "Terminated"))
	s.Until("the rank is to be on another node", func() error {
		if on, ready := s.On("train-0"), s.Run("train").Status.Ready; on == "" || on == node || ready != 2 {
			return fmt.Errorf("it is on %q, and %d are ready", on, ready)
		}
		return nil
	})
	s.Later(2 * time.Second)
	s.Remove("train")
	s.Gone("train")
	got := map[rqv1.EndCause]bool{}
	for _, l := range s.World().LeasesOf("train") {
		if lost := l.Status.Lost; lost != nil && lost.GPUSeconds+lost.OthersGPUSeconds >= 16 {
			got[l.Status.Cause] = true
		}
	}
	s.Same("by whom work was lost, of two seconds at least",
		map[rqv1.EndCause]bool{rqv1.CauseProgram: true, rqv1.CauseNode: true, rqv1.CauseUser: true}, got)
}
