package story

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// spreadStories are of Runs whose pods must be spread evenly over domains or nodes, of which each gets several.
func spreadStories() []Story {
	args := with(soon("3s"), "noticePeriod", "2s")
	return []Story{
		{Name: "spread-over-domains", Args: args, Play: spreadOverDomains},
		{Name: "spread-over-domains-of-full-nodes", Args: args, Play: spreadOverFullNodes},
		{Name: "spread-over-nodes", Args: args, Play: spreadOverNodes},
		{Name: "spread-over-domains-and-nodes", Args: args, Play: spreadOverBoth},
		{Name: "spread-beside-others", Args: args, Play: spreadBesideOthers},
		{Name: "spread-where-it-is-paid", Args: args, Play: spreadWhereItIsPaid},
		{Name: "spread-over-shards", Args: args, Play: spreadOverShards},
		{Name: "spread-waits-for-a-domain", Args: args, Play: spreadWaits},
		{Name: "spread-over-zones", Args: args, Play: spreadOverZones},
		{Name: "spread-apart", Args: args, Play: spreadApart},
	}
}

// domainKey is the label of nodes that names their fast-fabric domain.
const domainKey = "fabric.domain"

// spread has a Run's pods be spread evenly over nodes of its type with each value of some labels. Others count as well
// where pods do not say that they may not go there.
func (s *Teller) spread(keys ...string) RunChange {
	return func(r *rqv1.Run) {
		of := template(r)
		of.Labels, of.Spec.NodeSelector = map[string]string{"app": "train"}, map[string]string{"gpu.flavor": s.site.Flavor}
		for _, key := range keys {
			of.Spec.TopologySpreadConstraints = append(of.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
				MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector: &metav1.LabelSelector{MatchLabels: of.Labels}})
		}
	}
}

// spreadOverDomains has two domains share pods that one node has room for.
func spreadOverDomains(s *Teller) {
	s.Nodes("d", 2)
	s.Nodes("e", 2)
	s.Fund("a", Envelope("all", 64))
	s.Submit("train", 4, s.By("a"), InPods(1), s.spread(domainKey))
	s.Says("train", rqv1.RunRunning, "bound 4 GPUs")
	s.Holds("train", Places{"d-0": 2, "e-0": 2})
}

// spreadOverZones has two zones share pods, one of which has two domains: what is wider than a domain counts as itself.
func spreadOverZones(s *Teller) {
	in := func(zone string) NodeChange { return Labelled(corev1.LabelTopologyZone, s.site.Namespace+zone) }
	s.Nodes("d", 1, in("west"))
	s.Nodes("e", 1, in("west"))
	s.Nodes("f", 2, in("east"))
	s.Fund("a", Envelope("all", 64))
	s.Submit("train", 32, s.By("a"), InPods(8), s.spread(corev1.LabelTopologyZone))
	s.Says("train", rqv1.RunRunning, "bound 32 GPUs")
	s.Holds("train", Places{"d-0": 8, "e-0": 8, "f-0": 8, "f-1": 8})
}

// spreadApart has two domains share pods of which no two may be on one node.
func spreadApart(s *Teller) {
	s.Nodes("d", 3)
	s.Nodes("e", 2)
	s.Fund("a", Envelope("all", 64))
	s.Submit("train", 8, s.By("a"), InPods(2), s.spread(domainKey), Templated(func(of *corev1.PodTemplateSpec) {
		of.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "train"}}}}}}
	}))
	s.Says("train", rqv1.RunRunning, "bound 8 GPUs")
	var on []string
	for node, gpus := range s.Held("train") {
		on = append(on, fmt.Sprintf("%s: %d", node[:1], gpus))
	}
	slices.Sort(on)
	s.Same("GPUs of the nodes", []string{"d: 2", "d: 2", "e: 2", "e: 2"}, on)
}

// spreadOverFullNodes has two domains share pods each of which fills a node.
func spreadOverFullNodes(s *Teller) {
	s.Nodes("d", 3)
	s.Nodes("e", 2)
	s.Fund("a", Envelope("all", 64))
	s.Submit("train", 32, s.By("a"), InPods(8), s.spread(domainKey))
	s.Says("train", rqv1.RunRunning, "bound 32 GPUs")
	s.Holds("train", Places{"d-0": 8, "d-1": 8, "e-0": 8, "e-1": 8})
}

// spreadOverNodes has each of three nodes get pods of which there are more than nodes.
func spreadOverNodes(s *Teller) {
	s.Nodes("d", 3)
	s.Fund("a", Envelope("all", 64))
	s.Submit("train", 5, s.By("a"), InPods(1), s.spread(corev1.LabelHostname))
	s.Says("train", rqv1.RunRunning, "bound 5 GPUs")
	s.Holds("train", Places{"d-0": 2, "d-1": 2, "d-2": 1})
}

// spreadOverBoth has two rules be kept at once.
func spreadOverBoth(s *Teller) {
	s.Nodes("d", 2)
	s.Nodes("e", 2)
	s.Fund("a", Envelope("all", 64))
	s.Submit("train", 12, s.By("a"), InPods(2), s.spread(domainKey, corev1.LabelHostname))
	s.Says("train", rqv1.RunRunning, "bound 12 GPUs")
	var on []int32
	for _, gpus := range s.Held("train") {
		on = append(on, gpus)
	}
	slices.Sort(on)
	s.Same("GPUs of the nodes", []int32{2, 2, 4, 4}, on)
}

// spreadBesideOthers has what others hold leave room for it on some nodes alone.
func spreadBesideOthers(s *Teller) {
	s.Nodes("d", 2)
	s.Nodes("e", 2)
	s.standoff("e-0")
	s.Submit("train", 16, s.By("wants"), InPods(4), s.spread(domainKey))
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	s.Holds("train", Places{"d-0": 8, "e-1": 8})
}

// spreadWaits has one of two domains be full: the pods start once it is not, and hold nothing until then.
func spreadWaits(s *Teller) {
	s.Nodes("d", 2)
	s.Nodes("e", 1)
	s.standoff("e-0")
	s.Submit("train", 8, s.By("wants"), InPods(2), s.spread(domainKey))
	s.Says("train", rqv1.RunPending, "topology spread")
	s.Nothing("train")
	s.Remove("holder-e-0")
	s.Says("train", rqv1.RunRunning, "bound 8 GPUs")
	s.Holds("train", Places{"d-0": 4, "e-0": 4})
}

// spreadWhereItIsPaid has nobody pay on some of the nodes over which pods could be spread.
func spreadWhereItIsPaid(s *Teller) {
	s.Nodes("a", 4)
	s.Nodes("d", 4)
	s.Fund("a", Envelope("all", 64, In(domainKey, s.full("d"))))
	s.Submit("train", 4, s.By("a"), InPods(1), s.spread(corev1.LabelHostname))
	s.Says("train", rqv1.RunRunning, "bound 4 GPUs")
	s.Holds("train", Places{"d-0": 1, "d-1": 1, "d-2": 1, "d-3": 1})
}

// spreadOverShards has idle GPUs of all nodes be lent to a Run that takes what nobody else uses: they make room.
func spreadOverShards(s *Teller) {
	s.Nodes("d", 1)
	s.Nodes("e", 1)
	s.Fund("a", Envelope("all", 64))
	s.Submit("idle", 16, s.By("a"), InPods(2), Opportunistic)
	s.Shards("idle", 8)
	s.Submit("train", 16, s.By("a"), InPods(4), s.spread(domainKey))
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	s.Holds("train", Places{"d-0": 8, "e-0": 8})
}
