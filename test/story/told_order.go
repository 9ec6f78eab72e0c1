package story

import (
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// orderStories are of who gets what one Run gives back.
func orderStories() (all []Story) {
	ends := map[string]func(s *Teller){
		"at-once": func(s *Teller) { s.Finish("first") },
		"by-and-by": func(s *Teller) {
			s.Exit("first-0", Well)
			s.Later(100 * time.Millisecond)
			s.Exit("first-1", Well)
		},
		"deleted":   func(s *Teller) { s.Remove("first") },
		"suspended": func(s *Teller) { s.Edit("first", Suspended) },
		"failed":    func(s *Teller) { s.Exit("first-1", Exits(1, "Error")) },
	}
	for name, end := range ends {
		all = append(all,
			Story{Name: "one-end-of-gpus-" + name, Play: func(s *Teller) { oneEnd(s, 2, 100, end) }},
			Story{Name: "one-end-of-money-" + name, Play: func(s *Teller) { oneEnd(s, 4, 8, end) }})
	}
	all = append(all,
		Story{Name: "one-end-of-gpus-narrowed", Play: func(s *Teller) { narrowsForOne(s, 4, 100) }},
		Story{Name: "one-end-of-money-narrowed", Play: func(s *Teller) { narrowsForOne(s, 6, 16) }})
	for i := range all {
		all[i].Forgets = "that what it has found free is a part of what is about to be"
	}
	return append(all,
		Story{Name: "ends-apart-are-not-waited-for", Play: endsApart})
}

// wideAndSmall have an older Run of two pods wait, and two younger ones that are as wide as a pod.
func wideAndSmall(s *Teller) {
	s.Submit("wide", 16, InPods(8))
	s.Says("wide", rqv1.RunPending, "short by 16")
	s.Later(2 * time.Second)
	for _, name := range []string{"small-0", "small-1"} {
		s.Submit(name, 8, InPods(8))
		s.Says(name, rqv1.RunPending, "short by 8")
	}
}

// wideHasAll asserts that the older one has what has come free.
func wideHasAll(s *Teller) {
	s.Says("wide", rqv1.RunRunning, "bound 16 GPUs")
	for _, name := range []string{"small-0", "small-1"} {
		s.Opened(name, map[rqv1.LeaseReason]int{})
	}
}

// oneEnd has a Run of two pods end for which an older Run as wide waits, and two younger ones that are as wide as a
// pod: the older one starts.
func oneEnd(s *Teller, nodes int, each int32, ends func(*Teller)) {
	s.Nodes("d0", nodes)
	s.Fund("", Envelope("one", each), Envelope("two", each))
	s.Submit("first", 16, InPods(8))
	s.Says("first", rqv1.RunRunning, "bound 16 GPUs")
	wideAndSmall(s)
	ends(s)
	wideHasAll(s)
}

// narrowsForOne does so with one that becomes narrower.
func narrowsForOne(s *Teller, nodes int, each int32) {
	s.Nodes("d0", nodes)
	s.Fund("", Envelope("one", each), Envelope("two", each))
	s.Submit("first", 32, InPods(8), Elastic(16, 32, 16), Desires(32))
	s.Says("first", rqv1.RunRunning, "bound 32 GPUs")
	wideAndSmall(s)
	s.Edit("first", Desires(16))
	wideHasAll(s)
}

// endsApart has one pod of a Run end and the other go on: nobody waits for that one.
func endsApart(s *Teller) {
	s.Nodes("d0", 2)
	s.Fund("", Envelope("all", 100))
	s.Submit("first", 16, InPods(8))
	s.Says("first", rqv1.RunRunning, "bound 16 GPUs")
	wideAndSmall(s)
	s.Exit("first-0", Well)
	s.Says("small-0", rqv1.RunRunning, "bound 8 GPUs")
	s.Says("first", rqv1.RunRunning)
}
