package book_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// spreadFleet is a small fleet over which pods are to be spread, and how.
type spreadFleet struct {
	*world
	key        string
	size, skew int
}

// spreadFleetAny has some of its nodes be full.
func spreadFleetAny(rt *rapid.T) *spreadFleet {
	f := &spreadFleet{world: newWorld(rt), skew: rapid.IntRange(1, 2).Draw(rt, "skew"),
		key:  rapid.SampledFrom([]string{"fabric.domain", corev1.LabelHostname}).Draw(rt, "over"),
		size: rapid.SampledFrom([]int{2, 4, 8}).Draw(rt, "size")}
	f.asks(true)
	f.setBudget("a", "org:a", 512)
	for d := range rapid.IntRange(1, 3).Draw(rt, "domains") {
		for n := range rapid.IntRange(1, 3).Draw(rt, "nodes") {
			name := fmt.Sprintf("d%d-n%02d", d, n)
			f.addNode(name, fmt.Sprint("d", d))
			if rapid.IntRange(0, 3).Draw(rt, name) == 0 {
				f.submitWithSpares("holder-"+name, "org:a", 1, 1, gpusPerNode, 0, pinnedTo(name))
			}
		}
	}
	f.settle()
	return f
}

// stands returns how many pods of a Run each part of the nodes has, and how many more it has room for.
func (f *spreadFleet) stands(run string) (have, room map[string]int) {
	have, room = map[string]int{}, map[string]int{}
	for name, node := range f.Nodes {
		part := node.Labels[f.key]
		if part == "" {
			continue
		}
		have[part] += 0
		if !node.Spec.Unschedulable {
			room[part] += (f.sizeOf(name) - int(f.heldOn(name))) / f.size
		}
	}
	for _, name := range f.nodesOf(run) {
		if name != "" {
			have[f.Nodes[name].Labels[f.key]]++
		}
	}
	return have, room
}

// takes reports whether so many pods can come, one after the other.
func (f *spreadFleet) takes(have, room map[string]int, pods int) bool {
	have, room = maps.Clone(have), maps.Clone(room)
	for range pods {
		best, least := "", slices.Min(slices.Collect(maps.Values(have)))
		for _, part := range slices.Sorted(maps.Keys(have)) {
			if room[part] > 0 && have[part]+1-least <= f.skew && (best == "" || have[part] < have[best]) {
				best = part
			}
		}
		if best == "" {
			return false
		}
		have[best]++
		room[best]--
	}
	return true
}

// widest returns how many pods can start, of a least, by steps; 0 for none.
func (f *spreadFleet) widest(have, room map[string]int, least, step, most int) (pods int) {
	for n := least; n <= most; n += step {
		if f.takes(have, room, n) {
			pods = n
		}
	}
	return pods
}

// TestRunsThatAreSpreadStartNarrower: an elastic Run is as wide as it can be spread.
func TestRunsThatAreSpreadStartNarrower(t *testing.T) {
	plays(t, 60, func(rt *rapid.T) {
		f := spreadFleetAny(rt)
		have, room := f.stands("wants")
		least, step := rapid.IntRange(1, 4).Draw(rt, "least"), rapid.IntRange(1, 3).Draw(rt, "step")
		most := least + step*rapid.IntRange(0, 3).Draw(rt, "steps")
		asked := f.Asked
		f.submitWithSpares("wants", "org:a", 1, most, f.size, 0, spreadOver(f.key, f.skew), elastic(least, step))
		f.settle()
		want := f.widest(have, room, least, step, most)
		if got := len(f.nodesOf("wants")); f.Runs["wants"].Status.Phase != rqv1.RunRunning && want > 0 ||
			f.Runs["wants"].Status.Phase == rqv1.RunRunning && got != want {
			rt.Fatalf("with room for %v %d of %d to %d pods by %d run, want %d: %s", room, got, least, most, step, want,
				f.Runs["wants"].Status.Message)
		}
		if f.Asked > asked+100 {
			rt.Fatalf("rules were asked %d times", f.Asked-asked)
		}
	})
}

// TestRunsThatAreSpreadGrow: an elastic Run grows for as long as what it grows by can be spread.
func TestRunsThatAreSpreadGrow(t *testing.T) {
	plays(t, 60, func(rt *rapid.T) {
		f := spreadFleetAny(rt)
		least, step := rapid.IntRange(1, 3).Draw(rt, "least"), rapid.IntRange(1, 3).Draw(rt, "step")
		most := least + step*rapid.IntRange(1, 4).Draw(rt, "steps")
		f.submitWithSpares("wants", "org:a", 1, least, f.size, 0, spreadOver(f.key, f.skew), elastic(least, step),
			upTo((most-least)/step))
		f.settle()
		if f.Runs["wants"].Status.Phase != rqv1.RunRunning {
			return
		}
		before := len(f.nodesOf("wants"))
		f.desire("wants", int32(most*f.size))
		f.settle()
		have, room := f.stands("wants")
		got := len(f.nodesOf("wants"))
		if got < most && f.takes(have, room, step) {
			rt.Fatalf("with room for %v beside %v it grew from %d to %d pods of %d by %d: %+v %s", room, have, before, got, most,
				step, f.Runs["wants"].Status.Width, f.Runs["wants"].Status.Message)
		}
	})
}

// TestGroupsAreSpreadOverDomains: groups that each lie in one domain are laid out in the domains that the rule would
// have them in, also what a Run grows by, whichever these are planned in.
func TestGroupsAreSpreadOverDomains(t *testing.T) {
	tell(t, func(w *world) {
		w.asks(true)
		w.fleet("d0", 12)
		w.fleet("d1", 4)
		w.setBudget("a", "org:a", 512)
		grouped := func(s *rqv1.RunSpec) {
			gpus := int32(16)
			s.Locality = &rqv1.RunLocality{GroupGPUs: &gpus}
		}
		w.submitWithSpares("wants", "org:a", 2, 2, 8, 0, spreadOver("fabric.domain", 2), grouped, elastic(4, 4), upTo(1),
			func(s *rqv1.RunSpec) {
				gpus := int32(32)
				s.Malleable.DesiredTotalGPUs = &gpus
			})
		in := func(want ...int) {
			w.t.Helper()
			w.rounds(6)
			got := map[string]int{}
			for _, node := range w.nodesOf("wants") {
				got[node[:2]]++
			}
			if diff := cmp.Diff(map[string]int{"d0": want[0], "d1": want[1]}, got); diff != "" || w.Asked > want[2] {
				w.t.Fatalf("rules were asked %d times, pods in each domain (-want +got):\n%s", w.Asked, diff)
			}
		}
		in(2, 2, 2)
		w.desire("wants", 64)
		in(4, 4, 4)
	})
}

// TestLostRanksAreSpread: ranks whose node is lost go where the rule lets them.
func TestLostRanksAreSpread(t *testing.T) {
	plays(t, 60, func(rt *rapid.T) {
		f := spreadFleetAny(rt)
		pods := rapid.IntRange(1, 8).Draw(rt, "pods")
		f.submitWithSpares("wants", "org:a", 1, pods, f.size, 0, spreadOver(f.key, f.skew))
		f.settle()
		if f.Runs["wants"].Status.Phase != rqv1.RunRunning {
			return
		}
		lost := rapid.SampledFrom(f.nodesOf("wants")).Draw(rt, "lost")
		left := len(slices.DeleteFunc(f.nodesOf("wants"), func(node string) bool { return node == lost }))
		f.Lose(lost)
		have, room := f.stands("wants")
		have[f.Nodes[lost].Labels[f.key]] -= pods - left
		asked, rounds := f.Asked, 0
		for ; rounds < 12 && len(slices.DeleteFunc(f.nodesOf("wants"), func(node string) bool {
			return node == "" || node == lost
		})) < pods; rounds++ {
			f.rounds(1)
		}
		if rounds == 12 && f.takes(have, room, pods-left) {
			rt.Fatalf("with room for %v beside %v %d lost ranks are on %v: %s", room, have, pods-left, f.nodesOf("wants"),
				f.Runs["wants"].Status.Message)
		}
		if f.Asked > asked+20 {
			rt.Fatalf("rules were asked %d times", f.Asked-asked)
		}
	})
}

// TestALostRankIsLaidOutOffTheNodeThatEndedIt: a rank that its node has ended goes to another that the rule lets it
// have, and not back, whichever of them comes first.
func TestALostRankIsLaidOutOffTheNodeThatEndedIt(t *testing.T) {
	tell(t, func(w *world) {
		w.asks(true)
		w.fleet("d0", 4)
		w.setBudget("a", "org:a", 64)
		w.change("d0-n03", func(n *corev1.Node) { n.Spec.Unschedulable = true })
		w.submitWithSpares("wants", "org:a", 1, 3, 4, 0, spreadOver(corev1.LabelHostname, 1))
		w.rounds(6)
		w.running("wants", "although there is a node for each rank")
		w.change("d0-n03", func(n *corev1.Node) { n.Spec.Unschedulable = false })
		for _, uid := range w.SortedPods() {
			if w.Pods[uid].Spec.NodeName == "d0-n00" {
				w.Evict(uid, "NodeShutdown")
			}
		}
		w.rounds(8)
		if diff := cmp.Diff([]string{"d0-n01", "d0-n02", "d0-n03"}, w.nodesOf("wants")); diff != "" {
			w.t.Fatalf("nodes (-want +got):\n%s\n%s", diff, w.Runs["wants"].Status.Message)
		}
	})
}

// TestRanksBesideASeatAreSpread: of two lost ranks one takes the place of the spare, and the other goes where the rule
// lets it beside that one, in a few rounds.
func TestRanksBesideASeatAreSpread(t *testing.T) {
	tell(t, func(w *world) {
		w.asks(true)
		w.fleet("d0", 7)
		w.setBudget("a", "org:a", 512)
		grouped := func(s *rqv1.RunSpec) {
			gpus := int32(16)
			s.Locality = &rqv1.RunLocality{GroupGPUs: &gpus}
		}
		w.submitWithSpares("wants", "org:a", 1, 4, 4, 1, spreadOver(corev1.LabelHostname, 1), grouped)
		w.rounds(8)
		w.running("wants", "although there is a node for each rank")
		asked, nodes := w.Asked, w.nodesOfRole("wants", rqv1.RoleActive)
		w.Lose(nodes[0], nodes[1])
		w.rounds(12)
		got := w.nodesOfRole("wants", rqv1.RoleActive)
		if len(slices.Compact(got)) != 4 || slices.Contains(got, nodes[0]) || w.Asked > asked+6 {
			w.t.Fatalf("the ranks are on %v, rules were asked %d times: %s", got, w.Asked-asked, w.Runs["wants"].Status.Message)
		}
	})
}

// nodesOfRole returns the nodes of a Run's pods of a role, sorted.
func (w *world) nodesOfRole(run string, role rqv1.LeaseRole) (out []string) {
	for _, pod := range w.PodsOf(run) {
		if pod.Labels[rqv1.LabelRole] == string(role) {
			out = append(out, pod.Spec.NodeName)
		}
	}
	slices.Sort(out)
	return out
}

// TestARankThatWaitsDoesNotJoinTheOther: of two ranks that keep off each other one has its node back while the other
// waits for its own. What the nodes have said holds for the one that waits.
func TestARankThatWaitsDoesNotJoinTheOther(t *testing.T) {
	tell(t, func(w *world) {
		w.asks(true)
		w.fleet("d0", 2)
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("wants", "org:a", 1, 2, 4, 0, apart, ungrouped)
		w.rounds(4)
		w.running("wants", "although there is a node for each rank")
		asked := w.Asked
		w.change("d0-n00", func(n *corev1.Node) { n.Spec.Unschedulable = true })
		for _, uid := range w.SortedPods() {
			w.EvictByAPI(uid)
		}
		w.rounds(20)
		if w.Asked > asked+20 {
			w.t.Fatalf("rules were asked %d times: %s", w.Asked-asked, w.Runs["wants"].Status.Message)
		}
		w.change("d0-n00", func(n *corev1.Node) { n.Spec.Unschedulable = false })
		w.rounds(10)
		if diff := cmp.Diff([]string{"d0-n00", "d0-n01"}, w.nodesOf("wants")); diff != "" {
			w.t.Fatalf("nodes (-want +got):\n%s\n%s", diff, w.Runs["wants"].Status.Message)
		}
	})
}
