package story

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// spreadRoomStories are of Runs whose pods must be spread evenly and for which others must make room, or of whose ranks
// some are placed later than others, or which have spares.
func spreadRoomStories() []Story {
	args := with(with(soon("3s"), "noticePeriod", "2s"), "activationShield", "1h")
	return []Story{
		{Name: "spread-cuts-in-each-domain", Args: args, Play: spreadCutsInEach},
		{Name: "spread-cuts-in-each-zone", Args: args, Play: spreadCutsInZones},
		{Name: "spread-cuts-on-each-node", Args: args, Play: spreadCutsOnEachNode},
		{Name: "spread-cuts-for-both-rules", Args: args, Play: spreadCutsForBoth},
		{Name: "spread-cuts-apart", Args: args, Play: spreadCutsApart},
		{Name: "spread-cuts-beside-free-room", Args: args, Play: spreadCutsBesideFree},
		{Name: "spread-cuts-nobody", Args: args, Play: spreadCutsNobody},
		{Name: "spread-with-a-spare", Args: args, Play: spreadWithASpare},
		{Name: "spread-counts-spares", Args: args, Play: spreadCountsSpares},
		{Name: "spread-with-a-spare-cuts", Args: args, Play: spreadSpareCuts},
		{Name: "spread-grows", Args: args, Play: spreadGrows},
		{Name: "spread-after-a-loss", Args: args, Play: spreadAfterALoss},
		{Name: "spread-starts-narrower", Args: args, Play: spreadStartsNarrower},
	}
}

// inDomains waits until a Run holds so many GPUs in each domain, or zone if there is one, by the first letter of nodes.
func (s *Teller) inDomains(run string, want Places) {
	s.T.Helper()
	s.Until("GPUs of "+run+" in each domain", func() error {
		got := Places{}
		for node, gpus := range s.Held(run) {
			got[node[:1]] += gpus
		}
		return differs(want, got)
	})
}

// cutHolders waits until so many of those that held nodes are cut, and no more.
func (s *Teller) cutHolders(want int, nodes ...string) {
	s.T.Helper()
	cut := 0
	for _, node := range nodes {
		if s.Closed("holder-" + node)["RandomPreempt"] > 0 {
			cut++
		}
	}
	s.Same("how many were cut", want, cut)
}

// spreadCutsInEach has one node in each of two full domains be cleared for pods that one domain has room for.
func spreadCutsInEach(s *Teller) {
	s.Nodes("d", 2)
	s.Nodes("e", 2)
	s.standoff("d-0", "d-1", "e-0", "e-1")
	s.Submit("train", 16, s.By("wants"), InPods(4), s.spread(domainKey))
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	s.inDomains("train", Places{"d": 8, "e": 8})
	s.cutHolders(2, "d-0", "d-1", "e-0", "e-1")
	odds := map[string]string{}
	for _, c := range s.Promised("train", rqv1.ReservationReleased).Status.ConflictSet {
		odds[c.Run.Name] = c.Probability
	}
	s.Same("the odds", map[string]string{"holder-d-0": "0.5", "holder-d-1": "0.5", "holder-e-0": "0.5",
		"holder-e-1": "0.5"}, odds)
}

// spreadCutsInZones does so in two zones, of which one has two domains.
func spreadCutsInZones(s *Teller) {
	in := func(zone string) NodeChange { return Labelled(corev1.LabelTopologyZone, s.site.Namespace+zone) }
	s.Nodes("d", 1, in("west"))
	s.Nodes("e", 1, in("west"))
	s.Nodes("f", 2, in("east"))
	s.standoff("d-0", "e-0", "f-0", "f-1")
	s.Submit("train", 16, s.By("wants"), InPods(4), s.spread(corev1.LabelTopologyZone))
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	s.Until("GPUs in the east", func() error { return differs(int32(8), s.Held("train")["f-0"]+s.Held("train")["f-1"]) })
	s.cutHolders(2, "d-0", "e-0", "f-0", "f-1")
}

// spreadCutsOnEachNode has all of three full nodes be cleared for pods that two would have room for.
func spreadCutsOnEachNode(s *Teller) {
	s.Nodes("d", 3)
	s.standoff("d-0", "d-1", "d-2")
	s.Submit("train", 10, s.By("wants"), InPods(2), s.spread(corev1.LabelHostname))
	s.Says("train", rqv1.RunRunning, "bound 10 GPUs")
	s.Same("on each node", []int32{2, 4, 4}, sorted(s.Held("train")))
}

// spreadCutsForBoth has two rules be kept at once where others make room.
func spreadCutsForBoth(s *Teller) {
	s.Nodes("d", 2)
	s.Nodes("e", 2)
	s.standoff("d-0", "d-1", "e-0", "e-1")
	s.Submit("train", 12, s.By("wants"), InPods(2), s.spread(domainKey, corev1.LabelHostname))
	s.Says("train", rqv1.RunRunning, "bound 12 GPUs")
	s.inDomains("train", Places{"d": 6, "e": 6})
	s.Same("on each node", []int32{2, 2, 4, 4}, sorted(s.Held("train")))
}

// spreadCutsApart has two nodes in each of two full domains be cleared for pods of which no two may be on one.
func spreadCutsApart(s *Teller) {
	s.Nodes("d", 3)
	s.Nodes("e", 3)
	s.standoff("d-0", "d-1", "d-2", "e-0", "e-1", "e-2")
	s.Submit("train", 8, s.By("wants"), InPods(2), s.spread(domainKey), Apart)
	s.Says("train", rqv1.RunRunning, "bound 8 GPUs")
	s.inDomains("train", Places{"d": 4, "e": 4})
	s.Same("on each node", []int32{2, 2, 2, 2}, sorted(s.Held("train")))
	s.cutHolders(4, "d-0", "d-1", "d-2", "e-0", "e-1", "e-2")
}

// spreadCutsBesideFree has a node be cleared in the domain that is full, and nobody cut in the one that is not.
func spreadCutsBesideFree(s *Teller) {
	s.Nodes("d", 2)
	s.Nodes("e", 2)
	s.standoff("e-0", "e-1", "d-1")
	s.Submit("train", 16, s.By("wants"), InPods(4), s.spread(domainKey))
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	s.inDomains("train", Places{"d": 8, "e": 8})
	s.Same("in the domain with room", int32(8), s.Held("train")["d-0"])
	s.cutHolders(1, "e-0", "e-1")
	s.cutHolders(0, "d-1")
}

// spreadCutsNobody has one of two domains be held by pods that nobody may cut: no other is cut for pods that could not
// be spread. They start as soon as those have left.
func spreadCutsNobody(s *Teller) {
	s.Nodes("d", 2)
	s.Nodes("e", 1)
	s.standoff("d-0", "d-1")
	s.Occupy("foreign", "e-0", GPUs(8))
	s.Submit("train", 16, s.By("wants"), InPods(4), s.spread(domainKey))
	s.Says("train", rqv1.RunPending, "topology spread")
	s.Later(20 * time.Second)
	s.cutHolders(0, "d-0", "d-1")
	s.Nothing("train")
	s.DeletePodByForce("foreign")
	by := s.In(30 * time.Second)
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	if now := s.In(0); now.After(by.Time) {
		s.T.Fatalf("it started at %v, and was to by %v", now, by)
	}
	s.inDomains("train", Places{"d": 8, "e": 8})
	s.cutHolders(1, "d-0", "d-1")
}

// spreadWithASpare has a spare stand by beside pods that must be on all nodes.
func spreadWithASpare(s *Teller) {
	s.Nodes("d", 3)
	s.Fund("a", Envelope("all", 64))
	s.Submit("train", 5, s.By("a"), InPods(1), Spares(1), s.spread(corev1.LabelHostname))
	s.Says("train", rqv1.RunRunning, "bound 5 GPUs")
	s.standsBy("train", 1)
}

// spreadCountsSpares has ranks be spread by a rule that counts the spares as well, which come when all ranks have.
func spreadCountsSpares(s *Teller) {
	s.Nodes("d", 2)
	s.Nodes("e", 2)
	s.Fund("a", Envelope("all", 64))
	s.Submit("train", 24, s.By("a"), InPods(8), Spares(8), s.spread(domainKey), func(r *rqv1.Run) {
		for i := range r.Spec.Template.Spec.TopologySpreadConstraints {
			by := metav1.LabelSelector{MatchLabels: map[string]string{rqv1.LabelRun: "train"}}
			r.Spec.Template.Spec.TopologySpreadConstraints[i].LabelSelector = &by
		}
	})
	s.Says("train", rqv1.RunRunning, "bound 24 GPUs")
	s.standsBy("train", 8)
	s.inDomains("train", Places{"d": 16, "e": 16})
}

// spreadSpareCuts does so where others make room.
func spreadSpareCuts(s *Teller) {
	s.Nodes("d", 2)
	s.Nodes("e", 2)
	s.standoff("d-0", "d-1", "e-0", "e-1")
	s.Submit("train", 16, s.By("wants"), InPods(4), Spares(4), s.spread(domainKey))
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	s.standsBy("train", 4)
	got := Places{}
	for _, pod := range s.Pods("train") {
		if pod.Labels[rqv1.LabelRole] == string(rqv1.RoleActive) {
			got[s.On(pod.Name)[:1]]++
		}
	}
	s.Same("ranks in each domain", Places{"d": 2, "e": 2}, got)
}

// spreadGrows has a Run that grows stay spread.
func spreadGrows(s *Teller) {
	s.Nodes("d", 2)
	s.Nodes("e", 1)
	s.Fund("a", Envelope("all", 64))
	s.Submit("train", 16, s.By("a"), InPods(2), Elastic(4, 16, 4), Desires(4), s.spread(domainKey))
	s.Says("train", rqv1.RunRunning, "bound 4 GPUs")
	s.inDomains("train", Places{"d": 2, "e": 2})
	s.Edit("train", Desires(12))
	s.Says("train", rqv1.RunRunning, "grew to 12 GPUs")
	s.inDomains("train", Places{"d": 6, "e": 6})
}

// spreadAfterALoss has two lost ranks be where they keep the others spread.
func spreadAfterALoss(s *Teller) {
	s.Nodes("d", 2)
	s.Nodes("e", 3)
	s.Fund("a", Envelope("all", 64))
	s.Submit("train", 16, s.By("a"), InPods(4), s.spread(domainKey))
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	lost := "d-0"
	if s.Held("train")["d-1"] > 0 {
		lost = "d-1"
	}
	s.Lose(lost)
	s.Until("other places", func() error {
		if gpus := s.Held("train")[lost]; gpus > 0 {
			return fmt.Errorf("it holds %d GPUs on the lost node", gpus)
		}
		return nil
	})
	s.inDomains("train", Places{"d": 8, "e": 8})
}

// spreadStartsNarrower has an elastic Run be as wide as it can be spread.
func spreadStartsNarrower(s *Teller) {
	s.Nodes("d", 3)
	s.Nodes("e", 1)
	s.Fund("a", Envelope("all", 64))
	s.Submit("train", 32, s.By("a"), InPods(4), Elastic(4, 32, 4), s.spread(domainKey))
	s.Says("train", rqv1.RunRunning, "20 GPUs")
	s.inDomains("train", Places{"d": 12, "e": 8})
}

// sorted returns how many GPUs are held on each node, in order.
func sorted(held Places) []int32 {
	var out []int32
	for _, gpus := range held {
		out = append(out, gpus)
	}
	slices.Sort(out)
	return out
}
