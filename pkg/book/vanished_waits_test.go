package book_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// vanishesTwice has a rank's pod be deleted by force, and the next one too.
func (s *storm) vanishesTwice(pod string) {
	for range 2 {
		s.Vanish(s.withGrace(s.pod(pod), 60).UID)
		s.work()
		s.during(time.Second)
		s.work()
	}
}

// What vanishes twice of one rank keeps no other from going elsewhere, or from its spare.
func TestARankThatVanishesTwiceHoldsNoOtherUp(t *testing.T) {
	for name, spares := range map[string]int32{"with room": 0, "with a spare": 8} {
		t.Run(name, func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				s.fleet("d0", 6)
				s.setBudget("a", "org:a", 96)
				s.submitWithSpares("run0", "org:a", 1, 2, 8, 0, patient(60), sparing(spares), ungrouped)
				s.rounds(3)
				s.running("run0", "although there is room")
				s.vanishesTwice("run0-0")
				lost := s.on("run0-1")
				if at := s.on("run0-0"); at != "" || lost == "" {
					s.t.Fatalf("its ranks are on %q and %q\n%s", at, lost, s.story())
				}
				s.Lose(lost)
				s.rounds(8)
				if on := s.on("run0-1"); on == "" || on == lost {
					s.t.Fatalf("the other rank is on %q, and was on %s: %s\n%s", on, lost, s.Runs["run0"].Status.Message, s.story())
				}
				s.Now = s.Now.Add(2 * time.Minute)
				s.Book.Advance(s.Now)
				s.rounds(6)
				if on := s.on("run0-0"); on == "" {
					s.t.Fatalf("the rank has no place: %s\n%s", s.Runs["run0"].Status.Message, s.story())
				}
			})
		})
	}
}

// While a rank waits that vanished twice, another one that is lost and has no room has the Run wait, not end.
func TestARankThatVanishesTwiceEndsNobody(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 3)
		s.setBudget("a", "org:a", 96)
		s.submitWithSpares("run0", "org:a", 1, 2, 8, 0, ungrouped)
		s.rounds(3)
		s.running("run0", "although there is room")
		s.vanishesTwice("run0-0")
		s.Lose(s.on("run0-1"))
		s.rounds(8)
		s.running("run0", "although containers of its ranks may end within their time")
		s.Now = s.Now.Add(2 * time.Minute)
		s.Book.Advance(s.Now)
		s.rounds(8)
		if on := []string{s.on("run0-0"), s.on("run0-1")}; on[0] == "" || on[1] == "" {
			s.t.Fatalf("its ranks are on %q: %s\n%s", on, s.Runs["run0"].Status.Message, s.story())
		}
	})
}

// A rank whose pod vanished on a node that is out of service waits until the containers have ended, and then for the
// node, whoever begins meanwhile: nobody ends before.
func TestARankThatVanishesOnACordonedNodeWaits(t *testing.T) {
	for name, c := range map[string]struct {
		serves    time.Duration // after what time the node serves again
		restarts  bool
		uncordons bool
	}{
		"back while they may run":           {30 * time.Second, false, true},
		"back while they may run, and anew": {30 * time.Second, true, true},
		"back later":                        {90 * time.Second, false, true},
		"back later, and anew":              {90 * time.Second, true, true},
		"not back":                          {3 * time.Minute, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				s.rivals(map[string][]func(*rqv1.RunSpec){"low": {of("low")}}, 1)
				s.Pass(gangDeadline)
				pod := s.withGrace(s.pod("run0-1"), 60)
				node := pod.Spec.NodeName
				s.cordoned(node, true)
				s.Vanish(pod.UID)
				s.rounds(5)
				if c.restarts {
					s.restart()
				}
				for since := s.Now; s.Now.Sub(since) < c.serves && s.Now.Sub(since) < 100*time.Second; s.rounds(1) {
					s.Book.Advance(s.Now)
					s.running("run0", "although its node is waited for")
					s.running("low", "although a wait may do")
				}
				if !c.uncordons {
					for range 60 {
						s.Book.Advance(s.Now)
						s.rounds(1)
					}
					if phase := s.Runs["low"].Status.Phase; phase == rqv1.RunRunning {
						s.t.Fatalf("low is %s although the node was waited for long enough: %s", phase, s.Runs["run0"].Status.Message)
					}
					return
				}
				s.cordoned(node, false)
				for range 70 {
					s.Book.Advance(s.Now)
					s.rounds(1)
				}
				if on := s.on("run0-1"); on != node {
					s.t.Fatalf("the rank is on %q, want it back on %s: %s", on, node, s.Runs["run0"].Status.Message)
				}
				s.running("low", "although the rank is back")
			})
		})
	}
}

// Nor does it keep the ranks of several other groups of others' pods from going elsewhere at once, or another group
// from having its spare again.
func TestARankThatVanishesTwiceHoldsNoOtherGroupUp(t *testing.T) {
	for name, c := range map[string]struct {
		lose  []string
		kind  func(*rqv1.RunSpec)
		spare int32
	}{
		"ranks of others":  {[]string{"1", "2", "3"}, theirs, 0},
		"ranks":            {[]string{"1", "2", "3"}, patient(60), 0},
		"a spare":          {[]string{"s1"}, patient(60), 8},
		"a spare and rank": {[]string{"s1", "2"}, patient(60), 8},
	} {
		t.Run(name, func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				s.fleet("d0", 16)
				s.setBudget("a", "org:a", 256)
				s.submitWithSpares("run0", "org:a", 4, 1, 8, 0, c.kind, sparing(c.spare))
				s.rounds(3)
				s.running("run0", "although there is room")
				part := func(name string) *corev1.Pod {
					for _, pod := range s.PodsOf("run0") {
						if pod.Name == "run0-"+name || pod.Labels[rqv1.LabelRole] != string(rqv1.RoleSpare) &&
							pod.Labels[rqv1.LabelIndex] == name {
							return pod
						}
					}
					s.t.Fatalf("there is no pod of %s", name)
					return nil
				}
				for range 2 + c.spare/8 {
					s.Vanish(s.withGrace(part("0").UID, 60).UID)
					s.work()
					s.during(time.Second)
					s.work()
				}
				if at := part("0").Spec.NodeName; at != "" {
					s.t.Fatalf("the rank is on %q\n%s", at, s.story())
				}
				was := map[string]string{}
				for _, lost := range c.lose {
					was[lost] = part(lost).Spec.NodeName
				}
				for _, lost := range c.lose {
					s.Lose(was[lost])
				}
				s.work()
				for _, lost := range c.lose {
					if on := part(lost).Spec.NodeName; on == "" || on == was[lost] {
						s.t.Errorf("%s is on %q, and was on %s: %s\n%s", lost, on, was[lost], s.Runs["run0"].Status.Message, s.story())
					}
				}
			})
		})
	}
}

// Where there is no room for another rank that is lost, nobody waits until the containers have ended: that would not
// help. Whoever may be narrower goes on so, another starts again.
func TestNobodyWaitsForContainersInVain(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*rqv1.RunSpec)
		phase  rqv1.RunPhase
	}{
		"which may be narrower": {elastic(1, 1), rqv1.RunRunning},
		"which starts again":    {checkpointed, rqv1.RunPending},
	} {
		t.Run(name, func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				s.fleet("d0", 3)
				s.setBudget("a", "org:a", 64)
				s.submitWithSpares("run0", "org:a", 1, 3, 8, 0, ungrouped, c.change)
				s.rounds(4)
				s.running("run0", "although there is room")
				s.Vanish(s.withGrace(s.pod("run0-0"), 60).UID)
				s.rounds(3)
				s.running("run0", "although its rank waits")
				s.Lose(s.on("run0-1"))
				s.rounds(8)
				is := s.Runs["run0"].Status
				if is.Phase != c.phase || is.Phase == rqv1.RunRunning && is.Width.Granted == 24 {
					s.t.Fatalf("run0 is %s: %s\n%s", is.Phase, is.Message, s.story())
				}
			})
		})
	}
}

// While one rank waits for containers and others wait for their nodes, one of these goes where room comes about, on the
// money that is kept for it, although the envelope has no more; the Run says what the others wait for.
func TestOneOfThoseThatWaitGoesBesideAContainerThatMayRun(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleet("d0", 4)
		s.setBudget("a", "org:a", 24)
		s.setBudget("b", "org:b", 8)
		s.submit("run1", "org:b", 1, 1, 8)
		s.rounds(3)
		s.submitWithSpares("run0", "org:a", 1, 3, 8, 0, ungrouped)
		s.rounds(4)
		s.running("run0", "although there is room")
		free := s.on("run1-0")
		s.Vanish(s.withGrace(s.pod("run0-0"), 60).UID)
		node := s.on("run0-2")
		for _, pod := range []string{"run0-1", "run0-2"} {
			s.leavesCordoned(pod)
		}
		s.rounds(3)
		s.DeleteRun("run1")
		s.rounds(5)
		said := s.Runs["run0"].Status.Message
		if on := s.on("run0-1"); on != free || !strings.Contains(said, untilContainersEnd) || !strings.Contains(said, node) {
			s.t.Fatalf("the rank is on %q, want %s: %s\n%s", on, free, said, s.story())
		}
	})
}

const untilContainersEnd = "a pod was deleted by force, and its containers may still run"
