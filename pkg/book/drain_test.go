package book_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// cordons has nobody new come to a node, or somebody again.
func (s *storm) cordons(node string, cordoned bool) {
	s.change(node, func(n *corev1.Node) { n.Spec.Unschedulable = cordoned })
	s.work()
}

// asked asserts which ranks of a Run are asked to move, on which nodes, and whether that waits for something.
func (s *storm) askedToMove(run, want string) {
	s.t.Helper()
	s.Book.Assess(s.Runs[run].UID, s.Now)
	look, _ := s.Book.Look(book.Objects{
		Name: types.NamespacedName{Namespace: "ns", Name: run}, Run: s.Runs[run]})
	var got []string
	for _, r := range look.Drain.Ranks {
		got = append(got, fmt.Sprintf("%d@%s", r.Index, r.Node))
	}
	if look.Drain.Why != "" {
		got = append(got, "waits")
	}
	if text := strings.Join(got, " "); text != want {
		s.t.Fatalf("%s is asked to move %q (%s), want %q", run, text, look.Drain.Why, want)
	}
}

// A rank whose node is emptied has its spare's place, or free GPUs that nobody else is given meanwhile, or waits.
func TestARankIsAskedToMove(t *testing.T) {
	tellStorm(t, func(s *storm) {
		for _, node := range []string{"n0", "n1", "n2"} {
			s.addNode(node, "d0")
		}
		s.setBudget("a", "org:a", 16)
		s.setBudget("b", "org:b", 64)
		s.submit("run0", "org:a", 1, 2, 8)
		s.work()
		s.askedToMove("run0", "")
		on := s.runsOn("run0")
		s.cordons(on, true)
		s.askedToMove("run0", "0@"+on)
		s.submit("run1", "org:b", 1, 1, 8) // which is not given what is kept
		s.work()
		s.at("run1", "")
		s.askedToMove("run0", "0@"+on)
		s.cordons(on, false)
		s.askedToMove("run0", "")
		if s.work(); s.runsOn("run1") == "" {
			s.t.Fatalf("run1 is refused for %+v", s.Book.Refusal(s.Runs["run1"].UID))
		}
		s.cordons(on, true)
		s.askedToMove("run0", "0@"+on+" waits")
		if stuck := s.Book.StuckDrains(); len(stuck) != 1 || stuck[0].Node != on || stuck[0].Run != "ns/run0" {
			s.t.Fatalf("%+v", stuck)
		}
		s.DeleteRun("run1")
		s.work()
		s.askedToMove("run0", "0@"+on)
		s.lose("run0-0") // it has been evicted
		if now := s.runsOn("run0"); now == "" || now == on {
			s.t.Fatalf("run0 is on %q, and was on %s", now, on)
		}
		s.askedToMove("run0", "")
	})
}

// What is kept for a rank that is to move is others' once its Run is gone.
func TestARunThatIsGoneMovesNoRank(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 64)
		s.submit("run0", "org:a", 1, 1, 8)
		s.work()
		s.addNode("n1", "d0")
		s.cordons("n0", true)
		s.askedToMove("run0", "0@n0")
		s.DeleteRun("run0")
		s.submit("run1", "org:a", 1, 1, 8)
		s.work()
		s.at("run1", "n1")
	})
}

// A rank that its kubelet ends where it is, since its Run has failed, is on its way out, also where what says so is not
// known yet.
func TestARankOnACordonedNodeIsEndedWhereItIs(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.addNode("n0", "d0")
		s.setBudget("a", "org:a", 64)
		s.submit("run0", "org:a", 1, 1, 8)
		s.work()
		s.cordons("n0", true)
		s.AtOnce = false
		told := s.Pods[s.pod("run0-0")].DeepCopy()
		told.Spec.ActiveDeadlineSeconds = new(int64(rank.EndsNow))
		told.Annotations[rqv1.AnnotationEndsBy] = s.Now.Add(time.Minute).Format(time.RFC3339)
		s.SetPod(told)
		s.askedToMove("run0", "")
	})
}

// Of two ranks of a group whose nodes are emptied the first has the spare's place, and then the other waits.
func TestTwoRanksAreAskedToMove(t *testing.T) {
	tellStorm(t, func(s *storm) {
		for _, node := range []string{"n0", "n1", "n2"} {
			s.addNode(node, "d0")
		}
		s.setBudget("a", "org:a", 64)
		s.submitWithSpares("run0", "org:a", 1, 2, 8, 1)
		s.work()
		first := s.Pods[s.pod("run0-0")].Spec.NodeName
		second := s.Pods[s.pod("run0-1")].Spec.NodeName
		s.cordons(first, true)
		s.cordons(second, true)
		s.askedToMove("run0", "0@"+first+" 1@"+second)
		s.lose("run0-1")
		s.work()
		s.askedToMove("run0", "0@"+first+" waits")
	})
}

// A place that is kept for a rank which nobody evicts is given to others in time, but not while somebody could evict
// the rank, and is kept again later.
func TestAPlaceIsNotKeptForEverForACordon(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.aboutToLapse()
		s.Book.Assess(s.Runs["run0"].UID, s.Now.Add(time.Second)) // its Run has not been looked at since
		s.until(time.Second)
		if on := s.runsOn("run1"); s.least("run0") != 1 && on != "" {
			s.t.Fatalf("run1 is on %s, and the rank may still be evicted", on)
		}
		s.until(5 * time.Second)
		s.at("run1", "n1")
		s.waitsFor("run0", "NotEvicted", "rank 0 was not evicted from node n0 within "+gangDeadline.String())
		s.DeleteRun("run1")
		s.work()
		s.until(gangDeadline)
		s.submit("run2", "org:b", 1, 1, 8)
		s.until(time.Second)
		s.askedToMove("run0", "0@n0")
		s.at("run2", "")
		if !s.AskToEvict(s.pod("run0-0")) {
			s.t.Fatalf("the rank may not be evicted")
		}
		s.until(time.Second)
		s.at("run0", "n1")
		if s.least("run0") != 1 {
			s.t.Fatalf("it may be evicted again")
		}
	})
}

// Nor is it kept for ever for a rank that was evicted and hangs.
func TestAPlaceIsNotKeptForEverForAPodThatHangs(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.fleetOf("n0")
		s.submitWithSpares("run0", "org:a", 1, 1, 8, 0, patient(20))
		s.work()
		s.during(2 * time.Minute)
		s.work()
		s.addNode("n1", "d0")
		s.cordons("n0", true)
		s.askedToMove("run0", "0@n0")
		s.submit("run1", "org:b", 1, 1, 8)
		if !s.AskToEvict(s.pod("run0-0")) {
			s.t.Fatal("nobody can evict the rank")
		}
		s.hang(s.pod("run0-0"))
		s.disturb()
		for range 3 {
			s.until(5 * time.Second)
			s.at("run1", "")
		}
		for range 20 {
			s.until(10 * time.Second)
		}
		s.at("run1", "n1")
	})
}

// guardedOn has run0 run on one node for so long that it has a PodDisruptionBudget.
func (s *storm) guardedOn(node string) {
	s.fleetOf(node)
	s.submit("run0", "org:a", 1, 1, 8)
	s.work()
	s.during(2 * time.Minute)
	s.work()
}

// aboutToLapse has node n0 under run0 cordoned, and a place on n1 be kept for its rank for all but a second of the time
// that it is, while run1 waits for it.
func (s *storm) aboutToLapse() {
	s.t.Helper()
	s.guardedOn("n0")
	s.addNode("n1", "d0")
	s.cordons("n0", true)
	s.askedToMove("run0", "0@n0")
	s.submit("run1", "org:b", 1, 1, 8)
	s.until(gangDeadline - time.Second)
	s.at("run1", "")
	if s.least("run0") != 0 {
		s.t.Fatalf("nobody can evict the rank")
	}
}

// readyRun has run0 run with three ranks on three nodes, all ready, and a fourth node be free.
func (s *storm) readyRun() {
	s.fleetOf("n0", "n1", "n2")
	s.submit("run0", "org:a", 1, 3, 8)
	s.work()
	for _, rank := range []string{"run0-0", "run0-1", "run0-2"} {
		s.becomes(rank, true)
	}
	s.during(2 * time.Minute)
	s.addNode("n3", "d0")
}

// least returns how many ranks of a Run are to be available by its PodDisruptionBudget.
func (s *storm) least(run string) int32 {
	s.t.Helper()
	guard := s.Guard(run)
	if guard == nil {
		s.t.Fatalf("%s has no PodDisruptionBudget", run)
	}
	return guard.Spec.MinAvailable.IntVal
}

// waitsFor asserts why the drain of a Run's rank waits.
func (s *storm) waitsFor(run, reason, says string) {
	s.t.Helper()
	for _, c := range s.Runs[run].Status.Conditions {
		if c.Type == rqv1.ConditionDrainWaits && c.Status == metav1.ConditionTrue && c.Reason == reason &&
			strings.Contains(c.Message, says) {
			return
		}
	}
	s.t.Fatalf("%s says %+v, want %s: %s", run, s.Runs[run].Status.Conditions, reason, says)
}

// Ranks that are not ready keep a drain waiting, since a PodDisruptionBudget counts those that are; it is said which.
func TestADrainWaitsForRanksThatAreNotReady(t *testing.T) {
	tellStorm(t, func(s *storm) {
		s.readyRun()
		on := s.on("run0-0")
		s.cordons(on, true)
		s.askedToMove("run0", "0@"+on)
		for _, c := range s.Runs["run0"].Status.Conditions {
			if c.Type == rqv1.ConditionDrainWaits && c.Status == metav1.ConditionTrue {
				s.t.Fatalf("it waits: %s", c.Message)
			}
		}
		s.becomes("run0-0", false) // which may go all the same
		s.work()
		for _, c := range s.Runs["run0"].Status.Conditions {
			if c.Type == rqv1.ConditionDrainWaits && c.Status == metav1.ConditionTrue {
				s.t.Fatalf("it waits: %s", c.Message)
			}
		}
		s.becomes("run0-2", false)
		s.work()
		s.waitsFor("run0", "RanksNotReady", "ranks 0 2 are not ready")
		if stuck := s.Book.StuckDrains(); len(stuck) != 1 || stuck[0].Node != on ||
			!strings.Contains(stuck[0].Why, "ranks 0 2") {
			s.t.Fatalf("%+v", stuck)
		}
		s.becomes("run0-0", true)
		s.work()
		s.waitsFor("run0", "RanksNotReady", "rank 2 is not ready")
	})
}

// becomes has a pod be ready, or not any more.
func (s *storm) becomes(name string, ready bool) {
	pod := s.Pods[s.pod(name)].DeepCopy()
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
	s.SetPod(pod)
}

// The place that is kept for a rank is one that other scheduling rules accept. While they accept none the rank may not
// be evicted, and it is said which rule that is.
func TestOtherRulesAreAskedAboutADrain(t *testing.T) {
	for name, c := range map[string]struct {
		turned []string
		to     string
	}{
		"one of two accepts":   {[]string{"n1"}, "n2"},
		"the other of them":    {[]string{"n2"}, "n1"},
		"none of them does":    {[]string{"n1", "n2"}, ""},
		"nor does the spare's": {[]string{"n1", "n2", "s"}, ""},
		"the spare's does":     {[]string{"n1", "n2"}, "s"},
	} {
		t.Run(name, func(t *testing.T) {
			tellStorm(t, func(s *storm) {
				s.asks(true)
				spares := 0
				s.fleetOf("n0")
				if c.to == "s" || slices.Contains(c.turned, "s") {
					spares = 1
					s.addNode("s", "d0")
				}
				s.submitWithSpares("run0", "org:a", 1, 1, 8, spares)
				s.work()
				on := s.on("run0-0")
				to := map[string]string{"s": s.other(on, "n0", "s")}
				s.during(2 * time.Minute)
				s.work()
				s.addNode("n1", "d0")
				s.addNode("n2", "d0")
				const rule = "node(s) had volume node affinity conflict"
				s.Turns = func(_ *corev1.Pod, node string) string {
					if slices.ContainsFunc(c.turned, func(t string) bool { return cmp.Or(to[t], t) == node }) {
						return rule
					}
					return ""
				}
				s.cordons(on, true)
				s.until(5 * time.Second)
				if c.to == "" {
					s.waitsFor("run0", "NowhereToMove", rule)
					if s.least("run0") != 1 || s.AskToEvict(s.pod("run0-0")) {
						s.t.Fatalf("the rank may be evicted")
					}
					return
				}
				if s.least("run0") != 0 || !s.AskToEvict(s.pod("run0-0")) {
					s.t.Fatalf("the rank may not be evicted")
				}
				s.until(time.Second)
				s.at("run0", cmp.Or(to[c.to], c.to))
			})
		})
	}
}

// other returns which of two nodes another is not.
func (s *storm) other(node, x, y string) string {
	if node == x {
		return y
	}
	return x
}

// A rank leaves for maintenance only where other scheduling rules accept it.
func TestOtherRulesAreAskedAboutMaintenance(t *testing.T) {
	for _, turned := range []int{1, 2} {
		tellStorm(t, func(s *storm) {
			s.asks(true)
			s.fleetOf("n0")
			s.submit("run0", "org:a", 1, 1, 8)
			s.work()
			s.addNode("n1", "d0")
			s.addNode("n2", "d0")
			const rule = "node(s) had volume node affinity conflict"
			s.Turns = func(_ *corev1.Pod, node string) string {
				if slices.Contains([]string{"n1", "n2"}[:turned], node) {
					return rule
				}
				return ""
			}
			s.maintains("n0", time.Minute, time.Hour)
			s.until(time.Minute - 2*noticePeriod)
			s.until(noticePeriod)
			if turned == 1 {
				s.at("run0", "n2")
			} else {
				s.at("run0", "n0")
				s.ahead("run0", "NowhereToMove", rule)
			}
		})
	}
}
