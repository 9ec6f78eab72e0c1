package integration

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// aboutItself are rules of a Run about its own pods: one on each node.
var aboutItself = map[string]otherRule{
	"apart": {ask: func(r *rqv1.Run) {
		template(r).Labels = map[string]string{"app": "train"}
		r.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				LabelSelector: &metav1.LabelSelector{MatchLabels: r.Spec.Template.Labels},
				TopologyKey:   corev1.LabelHostname}}}}
	}, says: "node(s) didn't match pod anti-affinity rules"},
	"spread": {ask: func(r *rqv1.Run) {
		template(r).Labels = map[string]string{"app": "train"}
		r.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1,
			TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: r.Spec.Template.Labels}}}
	}, says: "node(s) didn't match pod topology spread constraints"},
}

// TestRulesAboutItself has Runs whose pods keep off each other: they start apart where there are nodes for that, others
// are cut for that on several nodes, in the domain that has several, and nobody where there is but one.
func TestRulesAboutItself(t *testing.T) {
	t.Parallel()
	arguments := led("3s")
	arguments["noticePeriod"] = "2s"
	c := clusterForMany(t, withoutElection, arguments)
	(&site{cluster: c, t: t}).startScheduler()
	for name, rule := range aboutItself {
		for story, tell := range map[string]func(*site, otherRule){"free": startsApart, "two full nodes": cutsTwo,
			"one full node": cutsNobodyForOneNode, "two domains": cutsWhereNodesAreTwo, "loss": replacedApart} {
			t.Run(name+" "+story, func(t *testing.T) {
				t.Parallel()
				s := newSite(t, c, 0, 0, 0)
				tell(s, rule)
				s.settled()
			})
		}
	}
}

func startsApart(s *site, rule otherRule) {
	s.addNodes("d", 3)
	s.fund("a", s.envelope("all", 64))
	s.submit("train", 12, s.by("a"), inPods(4), rule.ask)
	s.await("train", rqv1.RunRunning, "bound 12 GPUs")
	same(s.t, "its nodes", map[string]int{"d-0": 1, "d-1": 1, "d-2": 1}, s.nodesOf("train"))
}

func cutsTwo(s *site, rule otherRule) {
	s.addNodes("d", 2)
	s.standoff("d-0", "d-1")
	s.submit("train", 8, s.by("wants"), inPods(4), rule.ask)
	s.await("train", rqv1.RunRunning, "bound 8 GPUs")
	same(s.t, "its nodes", map[string]int{"d-0": 1, "d-1": 1}, s.nodesOf("train"))
}

func cutsNobodyForOneNode(s *site, rule otherRule) {
	s.addNodes("d", 1)
	plain := s.node("plain", "plain") // pods are spread over what has no GPUs as well
	delete(plain.Status.Capacity, gpuResource)
	delete(plain.Status.Allocatable, gpuResource)
	s.load(*plain)
	s.standoff("d-0")
	s.submit("train", 8, s.by("wants"), inPods(4), rule.ask)
	run := s.await("train", rqv1.RunPending, "no Run is cut for it")
	if run.Status.Refusal == nil || run.Status.Refusal.Rule != rule.says {
		s.t.Errorf("it is refused for %+v, want the rule %q", run.Status.Refusal, rule.says)
	}
	throughout(s.t, 6*time.Second, "the holder", func() error {
		run, err := s.get("holder-d-0")
		return errors.Join(err, is(run, rqv1.RunRunning, ""))
	})
}

// cutsWhereNodesAreTwo has one node be cheaper to free than two, in a domain where the pods could not be apart.
func cutsWhereNodesAreTwo(s *site, rule otherRule) {
	s.addNodes("a", 1)
	s.addNodes("b", 2)
	s.standoff("a-0", "b-0", "b-1")
	s.submit("train", 8, s.by("wants"), inPods(4), inGroups(8), rule.ask)
	s.await("train", rqv1.RunRunning, "bound 8 GPUs")
	same(s.t, "its nodes", map[string]int{"b-0": 1, "b-1": 1}, s.nodesOf("train"))
	same(s.t, "how the one in a goes on", map[rqv1.ClosureReason]int{"": 1}, s.closures("holder-a-0"))
}

// replacedApart has a rank be lost beside one whose node has GPUs for both, and is fuller than any other: its place is
// elsewhere.
func replacedApart(s *site, rule otherRule) {
	s.addNodes("d", 2)
	s.fund("a", s.envelope("all", 64))
	s.submit("train", 8, s.by("a"), inPods(4), rule.ask)
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
