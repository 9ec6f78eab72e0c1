package book_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// onNode has a pod go to some nodes alone, by their names with commas between.
func onNode(names string) *corev1.Affinity {
	var terms []corev1.NodeSelectorTerm
	for name := range strings.SplitSeq(names, ",") {
		terms = append(terms, corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{name}}}})
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
}

// TestPodsOfAGroupMayDifferInWhereTheyGo: each goes where it may itself, whatever the others may: one that may go to
// one node alone gets that, though it comes last, and though others would have it too. Where one has none, none has.
func TestPodsOfAGroupMayDifferInWhereTheyGo(t *testing.T) {
	for name, c := range map[string]struct {
		pinned map[int]string
		with   []func(*rqv1.RunSpec)
		want   map[int]string // the nodes of those that are pinned; nil where none starts
	}{
		"one is pinned, the others free": {pinned: map[int]string{2: "d0-n00"}, want: map[int]string{2: "d0-n00"}},
		"the first is pinned":            {pinned: map[int]string{0: "d1-n01"}, want: map[int]string{0: "d1-n01"}},
		"each is pinned": {pinned: map[int]string{0: "d1-n01", 1: "d0-n00", 2: "d1-n00"},
			want: map[int]string{0: "d1-n01", 1: "d0-n00", 2: "d1-n00"}},
		"two are for one node": {pinned: map[int]string{0: "d1-n01", 1: "d1-n01"}},
		"in one domain, one pinned": {pinned: map[int]string{2: "d2-n01"}, with: []func(*rqv1.RunSpec){together},
			want: map[int]string{2: "d2-n01"}},
		"in one domain, pinned to two": {pinned: map[int]string{0: "d0-n00", 2: "d2-n01"},
			with: []func(*rqv1.RunSpec){together}},
	} {
		t.Run(name, func(t *testing.T) {
			tell(t, func(w *world) {
				w.fleet("d0", 1)
				w.fleet("d1", 2)
				w.fleet("d2", 3)
				w.setBudget("a", "org:a", 48)
				w.controllers.pinned = c.pinned
				w.submitWithSpares("run00", "org:a", 1, 3, 8, 0, append([]func(*rqv1.RunSpec){ungrouped, theirs}, c.with...)...)
				w.rounds(4)
				got := map[int]string{}
				for slot, pods := range w.Slots(w.Runs["run00"].UID) {
					if node := pods[0].Spec.NodeName; c.pinned[slot] != "" && node != "" {
						got[slot] = node
					}
				}
				if diff := cmp.Diff(c.want, got); diff != "" && len(c.want)+len(got) > 0 {
					t.Errorf("on (-want +got):\n%s\n%s", diff, w.Runs["run00"].Status.Message)
				}
				if bound := len(w.boundSlots("run00")); bound != 3 && c.want != nil || bound != 0 && c.want == nil {
					t.Errorf("%d of its pods are bound: %s", bound, w.Runs["run00"].Status.Message)
				}
				w.settle()
				w.checkSettled()
			})
		})
	}
}

func together(s *rqv1.RunSpec) { s.Locality = &rqv1.RunLocality{AllowCrossGroupSpread: new(bool)} }

// startsWhole asserts that all pods of the Run of a world have a place.
func startsWhole(t *testing.T, w *world, pods int) {
	t.Helper()
	w.rounds(4)
	if bound := len(w.boundSlots("run00")); bound != pods {
		t.Errorf("%d of its %d pods are bound: %s", bound, pods, w.Runs["run00"].Status.Message)
	}
	w.settle()
	w.checkSettled()
}

// TestEachGroupOfPodsThatDifferFindsItsDomain: where several groups lie in a domain each, and pods of each differ, the
// domain that the first of them would choose may have no room for the others: they start in those that have.
func TestEachGroupOfPodsThatDifferFindsItsDomain(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 1)
		w.fleet("d1", 2)
		w.fleet("d2", 2)
		w.setBudget("a", "org:a", 48)
		leader := "d0-n00,d1-n00,d2-n00"
		w.controllers.pinned = map[int]string{0: leader, 2: leader}
		w.submitWithSpares("run00", "org:a", 2, 2, 8, 0, theirs)
		startsWhole(t, w, 4)
	})
}

// TestDomainsThatSomePodsMayNotUseAreNotTried: however many domains have room for all pods and no node that one of them
// may use, the one that has both is found.
func TestDomainsThatSomePodsMayNotUseAreNotTried(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 1)
		for i := range 70 {
			w.fleet(fmt.Sprintf("e%d", i), 3)
		}
		w.fleet("d1", 4)
		w.setBudget("a", "org:a", 48)
		w.controllers.pinned = map[int]string{0: "d0-n00,d1-n00"}
		w.submitWithSpares("run00", "org:a", 1, 3, 8, 0, ungrouped, theirs, together)
		startsWhole(t, w, 3)
	})
}

// TestPodsOfAGroupMayDifferFromItsSpare: a spare stands by where the first rank of its group may be. A rank that may
// not be there does not take its place: it goes where it may itself.
func TestPodsOfAGroupMayDifferFromItsSpare(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 5)
		w.setBudget("a", "org:a", 48)
		w.controllers.pinned = map[int]string{2: "d0-n03,d0-n04"}
		w.submitWithSpares("run00", "org:a", 1, 3, 8, 1, theirs)
		w.rounds(6)
		nodeOf := func() string { return w.Slots(w.Runs["run00"].UID)[2][0].Spec.NodeName }
		if node := nodeOf(); node != "d0-n03" {
			t.Fatalf("it starts on %q: %s", node, w.Runs["run00"].Status.Message)
		}
		w.Lose("d0-n03")
		w.rounds(20)
		w.settle()
		if node := nodeOf(); node != "d0-n04" {
			t.Errorf("it goes on on %q: %s", node, w.Runs["run00"].Status.Message)
		}
		w.checkSettled()
	})
}

// TestPayersOfPodsThatDifferGoOnForAsManyOnce: pods that differ are planned one kind beside the other, and an envelope
// that paid for some of them goes on paying for no more of them in all.
func TestPayersOfPodsThatDifferGoOnForAsManyOnce(t *testing.T) {
	tell(t, func(w *world) {
		w.fleet("d0", 3)
		w.fleet("d1", 20)
		w.setBudget("a", "org:a", 16)
		w.setBudget("b", "org:a", 8)
		w.controllers.pinned = map[int]string{0: "d0-n00,d1-n00"}
		w.submitWithSpares("run00", "org:a", 1, 3, 8, 0, theirs)
		w.rounds(4)
		if bound := len(w.boundSlots("run00")); bound != 3 {
			t.Fatalf("%d of its pods are bound: %s", bound, w.Runs["run00"].Status.Message)
		}
		for _, node := range []string{"d0-n00", "d0-n01", "d0-n02"} {
			w.Lose(node)
		}
		w.rounds(20)
		w.settle()
		if bound := len(w.boundSlots("run00")); bound != 3 {
			t.Errorf("%d of its pods are bound: %s", bound, w.Runs["run00"].Status.Message)
		}
		w.checkSettled()
		paid := map[string]int{}
		for _, l := range w.OpenLeases() {
			paid[l.Spec.Payer.Budget] += 8
		}
		if diff := cmp.Diff(map[string]int{"a": 16, "b": 8}, paid); diff != "" {
			t.Errorf("those who pay (-want +got):\n%s", diff)
		}
	})
}
