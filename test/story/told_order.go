package story

import (
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// orderStories are of who gets what comes free.
func orderStories() (all []Story) {
	for name, ends := range map[string]func(s *Teller){
		"at-once": func(s *Teller) { s.Finish("first") },
		"one-after-the-other": func(s *Teller) {
			s.Exit("first-0", Well)
			s.Later(100 * time.Millisecond)
			s.Exit("first-1", Well)
		},
		"by-deletion": func(s *Teller) { s.Remove("first") },
	} {
		all = append(all, Story{Name: "ends-count-as-one-" + name, Play: func(s *Teller) { endsCountAsOne(s, ends) },
			Forgets: "that what it has found free is a part of what is about to be"})
	}
	return all
}

// endsCountAsOne has a Run of two pods end for which an older Run as wide waits, and two younger ones that are as wide
// as a pod: the older one starts.
func endsCountAsOne(s *Teller, ends func(*Teller)) {
	s.Nodes("d0", 2)
	s.Fund("", Envelope("one", 8), Envelope("two", 8))
	s.Submit("first", 16, InPods(8))
	s.Says("first", rqv1.RunRunning, "bound 16 GPUs")
	s.Submit("wide", 16, InPods(8))
	s.Says("wide", rqv1.RunPending, "short by 16")
	s.Later(2 * time.Second)
	for _, name := range []string{"small-0", "small-1"} {
		s.Submit(name, 8, InPods(8))
		s.Says(name, rqv1.RunPending, "short by 8")
	}
	ends(s)
	s.Says("wide", rqv1.RunRunning, "bound 16 GPUs")
	for _, name := range []string{"small-0", "small-1"} {
		s.Opened(name, map[rqv1.LeaseReason]int{})
	}
}
