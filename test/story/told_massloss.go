package story

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// massLossStories are of many nodes that show a sign of loss at once.
func massLossStories() []Story {
	return []Story{
		{Name: "mass-loss", Args: map[string]any{"nodeLossGrace": "25s", "nodeLossConditions": []string{brokenGPU}},
			Forgets: "how long a kubelet has been silent: who begins anew listens for as long again", Play: massLoss},
	}
}

const (
	// brokenGPU is a condition that counts where the configuration names it.
	brokenGPU   = "GPUBroken"
	massSwapped = "group 0 swapped to spare after node failure"
)

// heldBack waits until losses are held back, told on nodes for a reason, and by the Runs that are on them.
func (s *Teller) heldBack(reason string, runs ...string) {
	s.T.Helper()
	s.Until("the loss of nodes is to be held back", func() error {
		for _, run := range runs {
			node := s.On(run + "-0")
			if mark := s.IsNode(node).Annotations[rqv1.AnnotationHeldBack]; !strings.Contains(mark, reason) {
				return fmt.Errorf("node %s says %q", node, mark)
			}
			c := meta.FindStatusCondition(s.Run(run).Status.Conditions, rqv1.ConditionNodesHeldBack)
			if c == nil || !strings.Contains(s.short(c.Message), node) {
				return fmt.Errorf("Run %s says %+v", run, c)
			}
		}
		return nil
	})
}

// released waits until nothing is held back any more.
func (s *Teller) released() {
	s.T.Helper()
	s.Until("nothing is to be held back any more", func() (errs error) {
		for _, node := range s.World().Nodes {
			if mark := node.Annotations[rqv1.AnnotationHeldBack]; mark != "" {
				errs = errors.Join(errs, fmt.Errorf("node %s says %q", node.Name, mark))
			}
		}
		return errs
	})
}

// massLoss has 40 % of many nodes show a sign of loss at once, first by silence, then by a condition: none of them is
// taken for lost, and it is told, while nodes that are deleted, out of service, or lost by a person's word are replaced
// as ever. When the sign is gone all goes on: a single node with the same sign is lost.
func massLoss(s *Teller) {
	struck, spared := s.manyRuns(8)
	kept := struck.runs
	before := s.Traces(kept...)
	untouched := func() error { return differs(before, s.Traces(kept...)) }
	for _, node := range struck.nodes {
		s.Silence(node)
	}
	s.heldBack("KubeletLeaseStale", kept...)
	s.RemoveNode(s.On(spared[0] + "-1"))
	s.Says(spared[0], rqv1.RunRunning, massSwapped)
	s.Lose(s.On(spared[1] + "-1"))
	s.Says(spared[1], rqv1.RunRunning, massSwapped)
	s.Never(8*time.Second, "nothing is to be torn down", untouched)
	for _, node := range struck.nodes {
		s.Hear(node)
	}
	s.released()
	s.must(untouched())

	for _, node := range slices.Backward(struck.nodes) { // those that are empty come first
		s.ChangeNode(node, Shows(brokenGPU, corev1.ConditionTrue))
	}
	s.heldBack("NodeCondition", kept...)
	s.Never(8*time.Second, "nothing is to be torn down", untouched)
	s.ChangeNode(s.On(kept[0]+"-0"), s.lostByWord("gone"))
	s.Says(kept[0], rqv1.RunRunning, massSwapped)
	for _, node := range struck.nodes {
		s.ChangeNode(node, Shows(brokenGPU, corev1.ConditionFalse))
	}
	s.released()
	others := s.Traces(kept[2:]...)
	s.ChangeNode(s.On(kept[1]+"-0"), Shows(brokenGPU, corev1.ConditionTrue))
	s.Says(kept[1], rqv1.RunRunning, massSwapped)
	s.Same("the others", others, s.Traces(kept[2:]...))
}

// stricken are nodes that are to show a sign, and the Runs whose first ranks are on them.
type stricken struct{ nodes, runs []string }

// manyRuns starts Runs of two ranks and a spare on 40 nodes. It returns which of the nodes are to show a sign: those of
// the first ranks of all Runs but two, which are to be spared, and others that are empty.
func (s *Teller) manyRuns(count int) (struck stricken, spared []string) {
	s.T.Helper()
	s.Fund("", Envelope("all", int32(4*count*8)))
	for d := range 4 {
		s.Nodes(fmt.Sprintf("d%d", d), 10)
	}
	used := Places{}
	for i := range count {
		name := fmt.Sprintf("mass-%d", i)
		s.Submit(name, 16, InPods(8), InGroups(16), Spares(8))
		s.Says(name, rqv1.RunRunning, "bound 16 GPUs")
		maps.Copy(used, s.Held(name))
		if i < count-2 {
			struck.nodes, struck.runs = append(struck.nodes, s.On(name+"-0")), append(struck.runs, name)
		} else {
			spared = append(spared, name)
		}
	}
	for _, node := range s.World().Nodes {
		name := s.short(node.Name)
		if ours := node.Labels["gpu.flavor"] == s.site.Flavor; ours && used[name]+used[name+" Spare"] == 0 &&
			len(struck.nodes) < 16 {
			struck.nodes = append(struck.nodes, name)
		}
	}
	return struck, spared
}
