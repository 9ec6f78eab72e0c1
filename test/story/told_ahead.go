package story

import (
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// aheadStories are of maintenance that is far ahead, and of ends that are near: nobody is cut while nodes or GPUs that
// are free until then, or soon, would do.
func aheadStories() (all []Story) {
	for name, movable := range map[string][]RunChange{
		"a-checkpoint": {Checkpointed(10 * time.Minute)},
		"a-spare":      {InGroups(16), Spares(8)},
	} {
		all = append(all, Story{Name: "maintenance-ahead-with-" + name, Args: soon("20s"),
			Play: func(s *Teller) { usesNodesAhead(s, movable...) }})
	}
	return append(all,
		Story{Name: "maintenance-ahead-cuts-nobody", Args: soon("20s"), Long: "a day passes",
			Play: maintenanceAheadCutsNobody},
		Story{Name: "a-minute-that-is-known-cuts-nobody", Args: soon("20s"), Play: aKnownMinuteCutsNobody})
}

// usesNodesAhead starts a Run that can be moved on nodes of which maintenance is announced for the day after tomorrow,
// once the others are full, and not before.
func usesNodesAhead(s *Teller, movable ...RunChange) {
	s.Nodes("d0", 3)
	s.Nodes("d1", 3)
	s.Fund("", Envelope("all", 100))
	for _, node := range []string{"d0-0", "d0-1", "d0-2"} {
		s.ChangeNode(node, maintained(s.Now().Add(48*time.Hour)))
	}
	movable = append(movable, InPods(8))
	s.Submit("first", 16, movable...)
	s.Says("first", rqv1.RunRunning, "bound 16 GPUs")
	for name := range s.Held("first") {
		if node := s.On(name); node != "" && node[:2] == "d0" {
			s.Errorf("%s is on %s, which is to be maintained, although there are others", name, node)
		}
	}
	s.Submit("second", 16, movable...)
	s.Says("second", rqv1.RunRunning, "bound 16 GPUs")
	s.Says("first", rqv1.RunRunning, "bound 16 GPUs")
}

// maintenanceAheadCutsNobody announces maintenance of the nodes that are free: a Run that might be there then is told
// which maxDuration would have it start, and cuts nobody for a day. With that it starts; another is cut for, after the
// day.
func maintenanceAheadCutsNobody(s *Teller) {
	s.Nodes("d0", 2)
	s.Nodes("d1", 2)
	s.Fund("", Envelope("all", 100))
	s.Submit("base", 16, InPods(8))
	s.Says("base", rqv1.RunRunning, "bound 16 GPUs")
	free := "d0"
	if s.On("base-0")[:2] == "d0" {
		free = "d1"
	}
	begins := s.Now().Add(60 * time.Hour)
	s.ChangeNode(free+"-0", maintained(begins))
	s.ChangeNode(free+"-1", maintained(begins))
	s.Submit("job", 16, InPods(8))
	said := s.Says("job", rqv1.RunPending, "with a maxDuration of at most 59h it would start now")
	if r := said.Status.Refusal; r == nil || r.MaxDuration == nil || r.MaxDuration.Duration != 59*time.Hour {
		s.Errorf("why it is refused, as data: %+v", r)
	}
	s.Submit("brief", 16, InPods(8), Lasts(59*time.Hour))
	s.Says("brief", rqv1.RunRunning, "bound 16 GPUs")
	s.Remove("brief")
	s.Gone("brief")
	s.Never(time.Minute, "base is to run", s.Still("base", rqv1.RunRunning))
	s.Later(23 * time.Hour)
	s.Never(time.Minute, "base is to run", s.Still("base", rqv1.RunRunning))
	s.Later(time.Hour)
	s.Says("job", rqv1.RunRunning, "bound 16 GPUs")
}

// aKnownMinuteCutsNobody has a Run end half a minute after another may be ended for one that waits: nobody is.
func aKnownMinuteCutsNobody(s *Teller) {
	s.Nodes("d0", 2)
	s.Fund("", Envelope("all", 100))
	s.Submit("lasting", 8, InPods(8))
	s.Says("lasting", rqv1.RunRunning, "bound 8 GPUs")
	s.Submit("brief", 8, InPods(8), Lasts(90*time.Second))
	s.Says("brief", rqv1.RunRunning, "bound 8 GPUs")
	s.Later(20 * time.Second)
	s.Submit("next", 8, InPods(8))
	s.Says("next", rqv1.RunRunning, "bound 8 GPUs")
	s.Says("lasting", rqv1.RunRunning, "bound 8 GPUs")
	s.Says("brief", rqv1.RunFailed, "maxDuration")
}
