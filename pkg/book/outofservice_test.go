package book_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// leavesCordoned has somebody cordon the node of a pod and have the pod leave it.
func (w *world) leavesCordoned(name string) (node string) {
	node = w.on(name)
	w.cordoned(node, true)
	w.evicted(name)
	return node
}

// evicted has somebody have a pod leave its node, which is seen before it is gone.
func (w *world) evicted(name string) {
	uid := w.pod(name)
	run := w.Pods[uid].Labels[rqv1.LabelRun]
	w.AtOnce = false
	w.EvictByAPI(uid)
	w.looked(run)
	if w.Pods[uid] != nil { // it had some time to end
		w.DeletePod(uid)
	}
	w.AtOnce = true
}

// awaits asserts that a running Run waits for a node.
func (w *world) awaits(run, node string) {
	w.running(run, "although its node is waited for")
	if said := w.Runs[run].Status.Message; !strings.Contains(said, "node "+node+", where a rank was, takes no pods now") {
		w.t.Fatalf("%s says %q, and not that it waits for %s", run, said, node)
	}
}

// A group of others' pods does not move to another domain for a cordon that comes and goes; for one that stays it does.
func TestAGroupDoesNotMoveForAShortCordon(t *testing.T) {
	for _, back := range []bool{true, false} {
		tell(t, func(w *world) {
			w.slices(3)
			want, to, lost := w.domains("run00"), w.freeOf("run00", 3), w.Slots(w.Runs["run00"].UID)[1][0].Name
			node := w.leavesCordoned(lost)
			w.rounds(6)
			w.awaits("run00", node)
			if back {
				w.cordoned(node, false)
				w.rounds(3)
				w.lies("run00", want, map[rqv1.ClosureReason]int{rqv1.ClosedEvicted: 1})
				return
			}
			w.Pass(gangDeadline)
			w.rounds(8)
			want[0], want[1] = to, to
			w.lies("run00", want, map[rqv1.ClosureReason]int{rqv1.ClosedEvicted: 1, rqv1.ClosedDeleted: 1})
		})
	}
}

// A node is waited for as well that is cordoned once the rank is gone, before that has another pod.
func TestANodeIsWaitedForThatIsCordonedLater(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(2, 2, 0, patient(20))
		w.submit("run1", "org:b", 1, 1, 8)
		w.Pass(gangDeadline)
		node := w.on("run0-1")
		w.evicted("run0-1")
		w.cordoned(node, true)
		w.rounds(6)
		w.awaits("run0", node)
		w.cordoned(node, false)
		w.rounds(3)
		if on := w.on("run0-1"); on != node {
			w.t.Fatalf("the rank is on %q, want it back on %s: %s", on, node, w.Runs["run0"].Status.Message)
		}
		w.waits("run1", "where a rank was that went for a moment")
		w.settle()
		w.checkSettled()
	})
}

// A node whose maintenance has begun by then, and takes longer than the wait, is not waited for.
func TestANodeInMaintenanceIsNotWaitedFor(t *testing.T) {
	for d, waited := range map[time.Duration]bool{gangDeadline / 2: true, time.Hour: false} {
		tellStorm(t, func(s *storm) {
			s.guarded(2, 2, 0, patient(20))
			s.Pass(gangDeadline)
			node := s.on("run0-1")
			s.announce(node, 0, d)
			s.leavesCordoned("run0-1")
			s.rounds(6)
			if phase := s.Runs["run0"].Status.Phase; (phase == rqv1.RunRunning) != waited {
				s.t.Fatalf("run0 is %s within a maintenance of %s: %s", phase, d, s.Runs["run0"].Status.Message)
			}
		})
	}
}

// Whoever takes over while a rank waits for its node has another go where there is room for it, beside the first.
func TestAnotherRankGoesOnWhileOneWaitsAfterARestart(t *testing.T) {
	for _, crashes := range []bool{false, true} {
		tell(t, func(w *world) {
			w.fleet("d0", 2)
			w.fleet("d1", 3)
			w.setBudget("a", "org:a", 32)
			w.submitWithSpares("run0", "org:a", 2, 2, 8, 0, patient(20))
			w.rounds(4)
			w.running("run0", "although it fits")
			w.Pass(gangDeadline)
			waits, loses := "run0-1", "run0-3"
			if !strings.HasPrefix(w.on(waits), "d0") {
				waits, loses = loses, waits
			}
			node := w.leavesCordoned(waits)
			w.rounds(3)
			w.awaits("run0", node)
			if crashes {
				w.crash()
			}
			lost := w.on(loses)
			w.Lose(lost)
			w.rounds(6)
			w.awaits("run0", node)
			if on := w.on(loses); on == "" || on == lost {
				w.t.Fatalf("the other rank is on %q, and was on %s", on, lost)
			}
			w.cordoned(node, false)
			w.rounds(3)
			if on := w.on(waits); on != node {
				w.t.Fatalf("the rank is on %q, want it back on %s", on, node)
			}
			w.settle()
			w.checkSettled()
		})
	}
}

// A pod of another group of others' pods goes on as well, although the first group's waits.
func TestAnotherGroupGoesOnWhileOneWaits(t *testing.T) {
	tell(t, func(w *world) {
		w.slices(2)
		w.addNode("free", w.domains("run00")[2])
		uid := w.Runs["run00"].UID
		node := w.leavesCordoned(w.Slots(uid)[1][0].Name)
		w.rounds(4)
		w.awaits("run00", node)
		w.Lose(w.boundSlots("run00")[3])
		w.rounds(8)
		w.awaits("run00", node)
		if on := w.boundSlots("run00")[3]; on != "free" {
			w.t.Fatalf("the pod of the other group is on %q, want the free node", on)
		}
		w.cordoned(node, false)
		w.rounds(3)
		if on := w.boundSlots("run00")[1]; on != node {
			w.t.Fatalf("the first is on %q, want it back on %s", on, node)
		}
	})
}

// Nobody ends for another rank that is lost meanwhile where that does not do for both.
func TestNobodyEndsForOneOfTwoThatNeedRoom(t *testing.T) {
	tell(t, func(w *world) {
		w.rivals(map[string][]func(*rqv1.RunSpec){"low": {of("low")}}, 1)
		w.Pass(gangDeadline)
		w.leavesCordoned("run0-1")
		w.rounds(4)
		w.Lose(w.on("run0-0"))
		w.rounds(8)
		w.running("low", "although its room is for one of two ranks")
	})
}

// Of two pods that others make one comes before the other, and elsewhere than where it was: what its owner's envelope
// keeps for the other does not pay for it as well.
func TestWhatIsKeptForAnotherRankPaysForNoneMeanwhile(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 2)
		w.setBudget("own", "org:a:x", 8)
		w.setBudget("family", "org:a", 8)
		w.submitWithSpares("run00", "org:a:x", 1, 2, 8, 0, ungrouped, theirs)
		w.rounds(3)
		w.running("run00", "although both pay for one")
		w.fleet("d1", 2)
		w.Pass(gangDeadline)
		uid := w.Runs["run00"].UID
		for _, node := range w.boundSlots("run00") {
			w.cordoned(node, true)
		}
		w.controllers.less[slot{uid, 0}] = true
		for _, n := range []int{0, 1} {
			w.DeletePod(w.Slots(uid)[n][0].UID)
		}
		w.rounds(5)
		if on := w.boundSlots("run00"); len(on) != 1 || !strings.HasPrefix(on[1], "d1") {
			w.t.Fatalf("its pods are on %v, want one on a node that serves", on)
		}
		w.settle() // and no envelope pays for more than it has
		w.checkSettled()
	})
}

// Of ranks that wait for their nodes those go elsewhere for which room comes about, in whose domain ever that is.
func TestOfSeveralThatWaitThoseGoForWhichThereIsRoom(t *testing.T) {
	for _, made := range []func(*rqv1.RunSpec){patient(20), theirs} {
		tell(t, func(w *world) {
			w.fleet("d0", 4)
			w.fleet("d1", 4)
			w.setBudget("a", "org:a", 64)
			w.submitWithSpares("run00", "org:a", 2, 4, 8, 0, made)
			w.rounds(4)
			w.running("run00", "although it fits")
			w.Pass(gangDeadline)
			was := w.placedOf("run00")
			lost := []string{"0", "1", "6", "7"}
			for _, index := range lost {
				w.cordoned(was[index], true)
			}
			for _, pod := range w.PodsOf("run00") {
				if slices.Contains(lost, pod.Labels[rqv1.LabelIndex]) {
					w.DeletePod(pod.UID)
				}
			}
			w.rounds(4)
			w.awaits("run00", was["0"])
			w.addNode("free", w.Nodes[was["7"]].Labels["fabric.domain"])
			w.rounds(4)
			w.awaits("run00", was["0"])
			want := maps.Clone(was)
			want["6"] = "free"
			for _, index := range []string{"0", "1", "7"} {
				want[index] = ""
			}
			if diff := cmp.Diff(want, w.placedOf("run00")); diff != "" {
				w.t.Fatalf("its ranks are elsewhere (-want +got):\n%s", diff)
			}
			for _, index := range lost {
				w.cordoned(was[index], false)
				want[index] = was[index]
			}
			want["6"] = "free"
			w.rounds(4)
			if diff := cmp.Diff(want, w.placedOf("run00")); diff != "" {
				w.t.Fatalf("its ranks are elsewhere in the end (-want +got):\n%s", diff)
			}
			w.settle()
			w.checkSettled()
		})
	}
}

// placedOf returns where the ranks of a Run are, by index.
func (w *world) placedOf(run string) map[string]string {
	out := map[string]string{}
	for _, pod := range w.PodsOf(run) {
		out[pod.Labels[rqv1.LabelIndex]] = pod.Spec.NodeName
	}
	return out
}

// Where a free node rejects a rank that waits for its own, each try of which says nothing else, the Run says the same
// all along.
func TestWhatIsSaidOfAWaitHoldsStill(t *testing.T) {
	tell(t, func(w *world) {
		w.guarded(2, 2, 0, patient(20))
		w.addNode("free", "d0")
		w.Rejects["free"] = "node(s) had volume node affinity conflict"
		w.Pass(gangDeadline)
		node := w.leavesCordoned("run0-1")
		said := []string{w.Runs["run0"].Status.Message}
		for range 25 {
			w.rounds(1)
			if now := w.Runs["run0"].Status.Message; now != said[len(said)-1] {
				said = append(said, now)
			}
		}
		w.awaits("run0", node)
		if len(said) > 3 {
			w.t.Fatalf("it has said\n%s", strings.Join(said, "\n"))
		}
	})
}

// A group of which all ranks wait stays together: none of them goes to another domain, from which the others could not
// be reached.
func TestAGroupThatWaitsWholeStaysTogether(t *testing.T) {
	for _, made := range []func(*rqv1.RunSpec){patient(20), theirs} {
		tell(t, func(w *world) {
			w.fleet("d0", 2)
			w.setBudget("a", "org:a", 64)
			w.submitWithSpares("run00", "org:a", 1, 2, 8, 0, made)
			w.rounds(4)
			w.running("run00", "although it fits")
			w.Pass(gangDeadline)
			w.addNode("free", "d1")
			was := w.placedOf("run00")
			for _, node := range was {
				w.cordoned(node, true)
			}
			for _, pod := range w.PodsOf("run00") {
				w.DeletePod(pod.UID)
			}
			w.rounds(20)
			w.awaits("run00", was["0"])
			for _, node := range was {
				w.cordoned(node, false)
			}
			w.rounds(4)
			if diff := cmp.Diff(was, w.placedOf("run00")); diff != "" {
				w.t.Fatalf("its ranks are elsewhere (-want +got):\n%s", diff)
			}
			w.settle()
			w.checkSettled()
		})
	}
}

// Once others leave for a rank, it is said no more that its node is waited for.
func TestAWaitThatIsOverIsNotTold(t *testing.T) {
	tell(t, func(w *world) {
		w.rivals(map[string][]func(*rqv1.RunSpec){"low": {of("low"), patient(60)}}, 1)
		w.Pass(gangDeadline)
		node := w.leavesCordoned("run0-1")
		w.rounds(4)
		w.awaits("run0", node)
		w.AtOnce = false // low has its time
		w.Pass(gangDeadline)
		w.rounds(6)
		w.running("run0", "although others leave for its rank")
		if said := w.Runs["run0"].Status.Message; w.on("run0-1") != "" || said != "replacing 1 of 2 pods" {
			w.t.Fatalf("run0 says %q, and its rank is on %q", said, w.on("run0-1"))
		}
	})
}
