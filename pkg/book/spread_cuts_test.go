package book_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// spreadOver has a Run's pods be spread over nodes by a label.
func spreadOver(key string, skew int) func(*rqv1.RunSpec) {
	return func(s *rqv1.RunSpec) {
		like := map[string]string{"app": "spread"}
		s.Locality = nil
		s.Template = &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: like},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}},
				TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: int32(skew), TopologyKey: key,
					WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: like}}}}}
	}
}

// ruleAny is a rule by which pods are spread over nodes or domains.
func ruleAny(t *rapid.T) corev1.TopologySpreadConstraint {
	return corev1.TopologySpreadConstraint{MaxSkew: rapid.Int32Range(1, 2).Draw(t, "skew"),
		TopologyKey:       rapid.SampledFrom([]string{"fabric.domain", corev1.LabelHostname}).Draw(t, "over"),
		WhenUnsatisfiable: corev1.DoNotSchedule}
}

// spreadAny has a Run's pods be spread in a random way.
func spreadAny(t *rapid.T) func(*rqv1.RunSpec) {
	rule := ruleAny(t)
	return func(s *rqv1.RunSpec) {
		if s.Template == nil {
			s.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}
		}
		of := s.Template
		of.Labels = map[string]string{"app": "spread"}
		rule.LabelSelector = &metav1.LabelSelector{MatchLabels: of.Labels}
		of.Spec.TopologySpreadConstraints = append(of.Spec.TopologySpreadConstraints, rule)
	}
}

// spreadTheirsAny has the pods that others make be spread in a random way, or not.
func (w *world) spreadTheirsAny(t *rapid.T) {
	if w.Checks && rapid.IntRange(0, 2).Draw(t, "others' are spread") == 0 {
		rule := ruleAny(t)
		w.controllers.spread = &rule
	}
}

// pinnedTo has a Run's pods be on one node alone.
func pinnedTo(name string) func(*rqv1.RunSpec) {
	return func(s *rqv1.RunSpec) {
		s.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}},
			NodeSelector: map[string]string{corev1.LabelHostname: name}}}
	}
}

// spreadable reports whether so many pods can be spread over parts that have room for so many each.
func spreadable(room map[string]int, pods, skew int) bool {
	for least := range pods + 1 {
		lowest, highest := 0, 0
		for _, n := range room {
			if n < least {
				lowest = pods + 1
			}
			lowest, highest = lowest+least, highest+min(n, least+skew)
		}
		if lowest <= pods && pods <= highest {
			return true
		}
	}
	return false
}

// TestOthersAreCutWhereThatSpreads plays small fleets of which some nodes are held and some cannot be used: a Run whose
// pods are to be spread starts just where they can be, with others cut if it must be, and nobody is cut for it where
// they cannot.
func TestOthersAreCutWhereThatSpreads(t *testing.T) {
	plays(t, 60, func(rt *rapid.T) {
		s := newStorm(newWorld(rt))
		s.asks(true)
		s.setBudget("a", "org:a", 64)
		s.setBudget("b", "org:b", 64)
		key := rapid.SampledFrom([]string{"fabric.domain", corev1.LabelHostname}).Draw(rt, "over")
		size, skew := rapid.SampledFrom([]int{2, 4, 8}).Draw(rt, "size"), rapid.IntRange(1, 2).Draw(rt, "skew")
		pods, spares := rapid.IntRange(2, 8).Draw(rt, "pods"), 0
		room, held := map[string]int{}, 0
		for d := range rapid.IntRange(1, 3).Draw(rt, "domains") {
			for n := range rapid.IntRange(1, 3).Draw(rt, "nodes") {
				domain, name := fmt.Sprint("d", d), fmt.Sprintf("d%d-n%02d", d, n)
				s.addNode(name, domain)
				part := map[string]string{"fabric.domain": domain, corev1.LabelHostname: name}[key]
				fits := s.sizeOf(name) / size
				state := rapid.SampledFrom([]string{"free", "held", "held", "half", "cordoned", "left out"}).Draw(rt, name)
				switch state {
				case "held", "half":
					gpus := map[string]int{"held": s.sizeOf(name), "half": s.sizeOf(name) / 2}[state]
					s.submitWithSpares("holder-"+name, "org:a", 1, 1, gpus, 0, checkpointed, pinnedTo(name))
					held++
				case "cordoned":
					s.change(name, func(n *corev1.Node) { n.Spec.Unschedulable = true })
					fits = 0
				case "left out":
					s.change(name, func(n *corev1.Node) { delete(n.Labels, "cluster") })
					fits = 0
				}
				room[part] += fits
			}
		}
		s.work()
		s.during(time.Minute)
		s.submitWithSpares("wants", "org:b", 1, pods, size, spares, spreadOver(key, skew))
		for n := 0; n < 20 && s.Runs["wants"].Status.Phase != rqv1.RunRunning; n++ {
			s.during(15 * time.Second)
			s.work()
		}
		s.startsIf(spreadable(room, pods, skew), room, held)
		on := map[string]int{}
		for part := range room {
			on[part] = 0
		}
		for _, node := range s.nodesOf("wants") {
			if node != "" {
				on[s.Nodes[node].Labels[key]]++
			}
		}
		counts := slices.Sorted(maps.Values(on))
		if counts[len(counts)-1]-counts[0] > skew {
			rt.Fatalf("it is on %v", on)
		}
	})
}

// startsIf asserts whether the Run that wants GPUs runs, and that nobody is cut for it if it does not.
func (s *storm) startsIf(want bool, room map[string]int, held int) {
	s.t.Helper()
	cut := 0
	for name := range s.Runs {
		cut += s.ledger(name)[string(rqv1.ClosedRandomPreempt)]
	}
	runs := s.Runs["wants"].Status.Phase == rqv1.RunRunning
	if runs != want || !runs && cut > 0 {
		s.t.Fatalf("with room for %v, if all %d are cut, it is %s, and %d were cut; it is to run: %t\n%s", room, held,
			s.Runs["wants"].Status.Message, cut, want, s.story())
	}
}
