package story

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// apartStories are of Runs whose pods keep off each other: one on each node.
func apartStories() []Story {
	args := with(soon("3s"), "noticePeriod", "2s")
	return []Story{
		{Name: "apart-starts", Args: args, Play: apartStarts},
		{Name: "apart-cuts-two", Args: args, Play: apartCutsTwo},
		{Name: "apart-cuts-nobody-for-one-node", Args: args, Play: apartCutsNobody},
		{Name: "apart-cuts-where-nodes-are-two", Args: args, Play: apartCutsWhereNodesAreTwo},
		{Name: "apart-after-a-loss", Args: args, Play: apartAfterALoss},
	}
}

// Apart has no two pods of a Run be on one node.
func Apart(r *rqv1.Run) {
	of := template(r)
	of.Labels = map[string]string{"app": "train"}
	of.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: of.Labels}, TopologyKey: corev1.LabelHostname}}}}
}

// apartStarts has pods be apart where there are nodes for that.
func apartStarts(s *Teller) {
	s.Nodes("d", 3)
	s.Fund("a", Envelope("all", 64))
	s.Submit("train", 12, s.By("a"), InPods(4), Apart)
	s.Says("train", rqv1.RunRunning, "bound 12 GPUs")
	s.Holds("train", Places{"d-0": 4, "d-1": 4, "d-2": 4})
}

// standoff has a Run of its own hold each of some nodes.
func (s *Teller) standoff(nodes ...string) {
	s.T.Helper()
	s.Teams(64, "holder", "wants")
	for _, node := range nodes {
		s.Submit("holder-"+node, 8, s.By("holder"), InPods(8), Checkpointed(time.Hour),
			Templated(func(of *corev1.PodTemplateSpec) {
				of.Spec.NodeSelector = map[string]string{corev1.LabelHostname: s.full(node)}
			}))
		s.Says("holder-"+node, rqv1.RunRunning, "bound 8 GPUs")
	}
}

// apartCutsTwo has others be cut on two nodes, so that the pods are apart.
func apartCutsTwo(s *Teller) {
	s.Nodes("d", 2)
	s.standoff("d-0", "d-1")
	s.Submit("train", 8, s.By("wants"), InPods(4), Apart)
	s.Says("train", rqv1.RunRunning, "bound 8 GPUs")
	s.Holds("train", Places{"d-0": 4, "d-1": 4})
}

// apartCutsNobody has nobody be cut where there is one node alone, on which the pods could not be apart.
func apartCutsNobody(s *Teller) {
	s.Nodes("d", 1)
	s.Node("plain", "plain", WithGPUs(0))
	s.standoff("d-0")
	s.Submit("train", 8, s.By("wants"), InPods(4), Apart)
	run := s.Says("train", rqv1.RunPending, "no Run is cut for it")
	if refused := run.Status.Refusal; refused == nil || refused.Rule != "node(s) didn't match pod anti-affinity rules" {
		s.Errorf("it is refused for %+v", refused)
	}
	s.Never(6*time.Second, "the holder", s.Still("holder-d-0", rqv1.RunRunning))
}

// apartCutsWhereNodesAreTwo has one node be cheaper to free than two, in a domain where the pods could not be apart.
func apartCutsWhereNodesAreTwo(s *Teller) {
	s.Nodes("a", 1)
	s.Nodes("b", 2)
	s.standoff("a-0", "b-0", "b-1")
	s.Submit("train", 8, s.By("wants"), InPods(4), InGroups(8), Apart)
	s.Says("train", rqv1.RunRunning, "bound 8 GPUs")
	s.Holds("train", Places{"b-0": 4, "b-1": 4})
	s.Ledger("holder-a-0", Leases{Open: 1})
}

// apartAfterALoss has a rank be lost beside one whose node has GPUs for both, and is fuller than any other: its
// place is elsewhere.
func apartAfterALoss(s *Teller) {
	s.Nodes("d", 2)
	s.Fund("a", Envelope("all", 64))
	s.Submit("train", 8, s.By("a"), InPods(4), Apart)
	s.Says("train", rqv1.RunRunning, "bound 8 GPUs")
	s.Node("d-2", "d")
	s.RemoveNode("d-0")
	s.Until("the ranks", func() error {
		on := map[string]int{}
		for name := range s.Pods("train") {
			on[s.On(name)]++
		}
		if on["d-1"] != 1 || on["d-2"] != 1 {
			return fmt.Errorf("its pods are on %v", on)
		}
		return nil
	})
	s.Says("train", rqv1.RunRunning)
}
