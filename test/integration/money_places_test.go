package integration

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// inRegion puts a node into a region.
func inRegion(region string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels["region"] = region }
}

// TestMoneyForOnePlace has a team whose Budget pays in the west only: it never lands in the east, though there is room.
func TestMoneyForOnePlace(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 0, 0, 0)
	s.addDomain("east", 4, 8, inRegion("us-east"))
	s.addDomain("west", 2, 8, inRegion("us-west"))
	s.fund("team", s.envelope("west", 64, in("region", "us-west")))
	s.submit("first", 8, s.by("team"))
	s.submit("second", 8, s.by("team"))
	s.await("first", rqv1.RunRunning, "bound 8 GPUs")
	s.await("second", rqv1.RunRunning, "bound 8 GPUs")
	s.submit("third", 8, s.by("team"))
	s.await("third", rqv1.RunPending, "short by 8")
	if err := s.holdsNothing("third"); err != nil {
		t.Error(err)
	}
	s.fund("other", s.envelope("anywhere", 32))
	s.submit("elsewhere", 32, s.by("other"))
	s.await("elsewhere", rqv1.RunRunning, "bound 32 GPUs")
	s.removeRun("first")
	s.await("third", rqv1.RunRunning, "bound 8 GPUs")
	for _, run := range []string{"second", "third"} {
		if nodes := s.nodesOf(run); nodes["west-0"]+nodes["west-1"] != 1 {
			t.Errorf("%s runs on %v", run, nodes)
		}
	}
	s.settled()
}

// TestMoneyForTwoPlaces has a Run over two domains that two envelopes pay for, because neither pays for all of it.
func TestMoneyForTwoPlaces(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 0, 0, 0)
	s.addDomain("east", 3, 8, inRegion("us-east"))
	s.addDomain("west", 3, 8, inRegion("us-west"))
	s.fund("team", s.envelope("east", 16, in("region", "us-east")), s.envelope("west", 16, in("region", "us-west")))
	s.submit("wide", 32, s.by("team"), inGroups(16))
	s.await("wide", rqv1.RunRunning, "bound 32 GPUs")
	for _, lease := range s.leasesOf("wide") {
		node := &corev1.Node{}
		if err := s.api.Get(t.Context(), client.ObjectKey{Name: lease.Node()}, node); err != nil {
			t.Fatal(err)
		}
		if got := node.Labels["region"]; got != "us-"+lease.Spec.PaidByEnvelope {
			t.Errorf("envelope %s pays in %s", lease.Spec.PaidByEnvelope, got)
		}
	}
	s.paidBy("wide", map[string]int32{"team/east own Active": 16, "team/west own Active": 16})
	s.submit("more", 8, s.by("team"))
	s.awaitRefusal("more", "InsufficientBudget", "16 of 16 GPUs in use")
	s.fund("rich", s.envelope("east", 16, in("region", "us-east")))
	s.submit("east", 16, s.by("rich"), inPods(8))
	s.awaitRefusal("east", "NoRoomWhereFunded", "16 ", "needed, and 8 fit now where a Budget pays for them: short by 8; ",
		"/east pays for up to 16 on nodes with region=us-east")
	s.settled()
}

// TestLoop has two teams that lend to each other: each may spend what the other leaves, and it all comes to an end.
func TestLoop(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 4, 0)
	s.fund("a", s.envelope("all", 8, s.lends(0, "b")))
	s.fund("b", s.envelope("all", 8, s.lends(0, "a")))
	s.submit("of-a", 12, s.by("a"), inPods(4), s.from(0, "b"))
	s.await("of-a", rqv1.RunRunning, "bound 12 GPUs")
	s.awaitFunding("of-a", 8, s.sponsor("b", 4, "sponsor"))
	s.submit("of-b", 12, s.by("b"), inPods(4), s.from(0, "a"))
	s.awaitRefusal("of-b", "InsufficientBudget", "short by 8 of 12 GPUs")
	s.submit("small", 4, s.by("b"), inPods(4), s.from(0, "a"))
	s.await("small", rqv1.RunRunning, "bound 4 GPUs")
	s.awaitEnvelopes("b", rqv1.EnvelopeStatus{Name: "all", OwnedGPUs: 4, LentGPUs: 4, LendingGPUs: 4})
	s.removeRun("of-a")
	s.await("of-b", rqv1.RunRunning, "bound 12 GPUs")
	s.awaitFunding("of-b", 4, s.sponsor("a", 8, "sponsor"))
	s.awaitEnvelopes("a", rqv1.EnvelopeStatus{Name: "all", LentGPUs: 8, LendingGPUs: 8})
	s.settled()
	s.removeRun("of-b")
	s.removeRun("small")
	s.awaitEnvelopes("a", rqv1.EnvelopeStatus{Name: "all"})
	s.awaitEnvelopes("b", rqv1.EnvelopeStatus{Name: "all"})
}

// TestCircleOfParents has two owners be each other's parent: the Budgets say so, and others pay as ever.
func TestCircleOfParents(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 4, 0)
	parents := func(path string, of ...rqv1.Owner) {
		s.create(s.budgetFor(path, func(b *rqv1.Budget) {
			b.Spec.Parents, b.Spec.Envelopes = of, []rqv1.Envelope{s.envelope("all", 8)}
		}))
	}
	parents("x", s.of("y"))
	parents("y", s.of("x"))
	parents("z", s.of("w"))
	parents("w")
	for _, path := range []string{"x", "y"} {
		circular := s.awaitBudgetCondition(path, rqv1.ConditionCircular, metav1.ConditionTrue, "CircleOfParents")
		for _, owner := range []string{"x", "y"} {
			if !strings.Contains(circular.Message, string(s.of(owner))) {
				t.Errorf("Budget %s says %q", path, circular.Message)
			}
		}
	}
	s.submit("outside", 16, s.by("z"), inPods(8))
	s.await("outside", rqv1.RunRunning, "bound 16 GPUs")
	s.awaitFunding("outside", 8, s.sponsor("w", 8, "ancestor"))
	s.submit("inside", 8, s.by("x"))
	s.await("inside", rqv1.RunRunning, "bound 8 GPUs")
	s.awaitFunding("inside", 8)
	edit(s, s.budgetFor("y"), func(b *rqv1.Budget) { b.Spec.Parents = nil })
	for _, path := range []string{"x", "y"} {
		s.awaitBudgetCondition(path, rqv1.ConditionCircular, metav1.ConditionFalse, "NoCircle")
	}
	for _, path := range []string{"z", "w"} {
		if status, err := s.statusOf(path); err != nil || len(status.Conditions) > 0 {
			t.Errorf("Budget %s: %v, conditions %+v", path, err, status.Conditions)
		}
	}
	s.submit("child", 8, s.by("x"))
	s.await("child", rqv1.RunRunning, "bound 8 GPUs")
	s.awaitFunding("child", 0, s.sponsor("y", 8, "ancestor"))
	s.settled()
}
