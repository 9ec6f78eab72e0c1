package integration

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// whenSpread have a Run spread its pods over nodes: they start apart where there are nodes for that, others are cut for
// that on several nodes, in the domain that has several, and nobody where there is but one.
var whenSpread = map[string]func(*site){"free": startsApart, "two full nodes": cutsTwo,
	"one full node": cutsNobodyForOneNode, "two domains": cutsWhereNodesAreTwo, "loss": replacedApart}

// spreadOver has a Run's pods be spread over nodes, at most one more on one than on another.
func spreadOver(r *rqv1.Run) {
	template(r).Labels = map[string]string{"app": "train"}
	r.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1,
		TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: r.Spec.Template.Labels}}}
}

func startsApart(s *site) {
	s.addNodes("d", 3)
	s.fund("a", s.envelope("all", 64))
	s.submit("train", 12, s.by("a"), inPods(4), spreadOver)
	s.await("train", rqv1.RunRunning, "bound 12 GPUs")
	same(s.t, "its nodes", map[string]int{"d-0": 1, "d-1": 1, "d-2": 1}, s.nodesOf("train"))
}

func cutsTwo(s *site) {
	s.addNodes("d", 2)
	s.standoff("d-0", "d-1")
	s.submit("train", 8, s.by("wants"), inPods(4), spreadOver)
	s.await("train", rqv1.RunRunning, "bound 8 GPUs")
	same(s.t, "its nodes", map[string]int{"d-0": 1, "d-1": 1}, s.nodesOf("train"))
}

func cutsNobodyForOneNode(s *site) {
	s.addNodes("d", 1)
	plain := s.node("plain", "plain") // pods are spread over what has no GPUs as well
	delete(plain.Status.Capacity, gpuResource)
	delete(plain.Status.Allocatable, gpuResource)
	s.load(*plain)
	s.standoff("d-0")
	s.submit("train", 8, s.by("wants"), inPods(4), spreadOver)
	run := s.await("train", rqv1.RunPending, "no Run is cut for it")
	if r := run.Status.Refusal; r == nil || r.Rule != "node(s) didn't match pod topology spread constraints" {
		s.t.Errorf("it is refused for %+v", r)
	}
	throughout(s.t, 6*time.Second, "the holder", func() error {
		run, err := s.get("holder-d-0")
		return errors.Join(err, is(run, rqv1.RunRunning, ""))
	})
}

// cutsWhereNodesAreTwo has one node be cheaper to free than two, in a domain where the pods could not be apart.
func cutsWhereNodesAreTwo(s *site) {
	s.addNodes("a", 1)
	s.addNodes("b", 2)
	s.standoff("a-0", "b-0", "b-1")
	s.submit("train", 8, s.by("wants"), inPods(4), inGroups(8), spreadOver)
	s.await("train", rqv1.RunRunning, "bound 8 GPUs")
	same(s.t, "its nodes", map[string]int{"b-0": 1, "b-1": 1}, s.nodesOf("train"))
	same(s.t, "how the one in a goes on", map[rqv1.ClosureReason]int{"": 1}, s.closures("holder-a-0"))
}

// replacedApart has a rank be lost beside one whose node has GPUs for both, and is fuller than any other: its place is
// elsewhere.
func replacedApart(s *site) {
	s.addNodes("d", 2)
	s.fund("a", s.envelope("all", 64))
	s.submit("train", 8, s.by("a"), inPods(4), spreadOver)
	s.await("train", rqv1.RunRunning, "bound 8 GPUs")
	s.load(*s.node("d-2", "d"))
	s.delete(s.node("d-0", "d"))
	eventually(s.t, "the rank", func() error {
		if on := s.nodesOf("train"); on["d-1"] != 1 || on["d-2"] != 1 {
			return fmt.Errorf("its pods are on %v", on)
		}
		return nil
	})
	s.await("train", rqv1.RunRunning, "")
}
