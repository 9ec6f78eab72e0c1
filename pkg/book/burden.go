package book

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// kinds keeps one record of what pods ask for beside GPUs for all pods that ask for the same: shapes are compared by
// it, and there is a pod of everybody's on each node.
type kinds struct {
	gpus   corev1.ResourceName
	shared map[string]*topology.Amounts
}

// mostKinds is how many are kept; after so many it starts anew, since nobody counts who uses them.
const mostKinds = 10000

// of returns what a pod asks for of its node beside GPUs: resources, its place among the node's pods, and the node's
// ports.
func (k *kinds) of(pod *corev1.Pod) *topology.Amounts {
	amounts := map[string]int64{string(corev1.ResourcePods): 1}
	for resource, quantity := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
		UseStatusResources: true}) {
		if resource != k.gpus {
			amounts[string(resource)] += amountOf(resource, quantity.MilliValue(), quantity.Value())
		}
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			addPorts(amounts, pod, c)
		}
	}
	for i := range pod.Spec.Containers {
		addPorts(amounts, pod, &pod.Spec.Containers[i])
	}
	return k.share(topology.NewAmounts(amounts))
}

func (k *kinds) share(a *topology.Amounts) *topology.Amounts {
	var key strings.Builder
	for _, x := range a.All() {
		key.WriteString(x.Resource + "=" + strconv.FormatInt(x.N, 10) + ";")
	}
	if known := k.shared[key.String()]; known != nil {
		return known
	}
	if k.shared == nil || len(k.shared) == mostKinds {
		k.shared = map[string]*topology.Amounts{}
	}
	k.shared[key.String()] = a
	return a
}

// addPorts adds the ports of the node that a container asks for. A pod on the node's network has those of its
// containers, also where no API server has said so yet. Addresses are not told apart.
func addPorts(amounts map[string]int64, pod *corev1.Pod, c *corev1.Container) {
	for _, p := range c.Ports {
		port := p.HostPort
		if port == 0 && pod.Spec.HostNetwork {
			port = p.ContainerPort
		}
		if port > 0 {
			protocol := p.Protocol
			if protocol == "" {
				protocol = corev1.ProtocolTCP
			}
			amounts[topology.Port(string(protocol), port)] = 1
		}
	}
}

// amountOf counts CPU in thousandths and all else in its units.
func amountOf(resource corev1.ResourceName, thousandths, units int64) int64 {
	if resource == corev1.ResourceCPU {
		return thousandths
	}
	return units
}

// besideOn returns what a node has for pods beside GPUs.
func (k *kinds) besideOn(node *corev1.Node) *topology.Amounts {
	amounts := map[string]int64{string(corev1.ResourcePods): math.MaxInt32} // unless it says
	for resource, quantity := range node.Status.Allocatable {
		if resource != k.gpus {
			amounts[string(resource)] = amountOf(resource, quantity.MilliValue(), quantity.Value())
		}
	}
	return topology.NewAmounts(amounts)
}

// ruleOn says in kube-scheduler's words what keeps a pod from a node beside GPUs.
func ruleOn(resource string) string {
	switch {
	case resource == string(corev1.ResourcePods):
		return "Too many pods"
	case topology.IsPort(resource):
		return "node(s) didn't have free ports for the requested pod ports"
	}
	return "Insufficient " + resource
}

// bystander is a pod that holds no GPUs, and something else of its node.
type bystander struct {
	node   string
	beside *topology.Amounts
}

// setBystander notes what a pod without GPUs holds of its node. Spares' pods are none: they hold what their ranks ask
// for.
func (s *seating) setBystander(pod *corev1.Pod) {
	if _, ours := pod.Labels[rqv1.LabelRun]; ours {
		return
	}
	next := bystander{pod.Spec.NodeName, s.nodes.kinds.of(pod)}
	if was, known := s.bystanders[pod.UID]; !known || was != next {
		s.dropBystander(pod.UID)
		s.bystanders[pod.UID] = next
		s.fleet.Burden(next.node, next.beside, +1)
	}
}

// dropBystander gives back what such a pod held, for the gangs that were refused for want of it.
func (s *seating) dropBystander(pod types.UID) {
	was, known := s.bystanders[pod]
	if !known {
		return
	}
	delete(s.bystanders, pod)
	s.fleet.Burden(was.node, was.beside, -1)
	s.waiting.eased(s.nodes.nodeFlavor(was.node))
}

// besideOf returns what a holding holds beside its GPUs: what its pod asks for, or the rank whose room it is.
func (s *seating) besideOf(pod types.UID, h *holding) *topology.Amounts {
	m := s.roster.members[pod]
	switch {
	case m == nil:
		return h.beside
	case m.part.Spare:
		return m.gang.demand.Beside
	}
	return m.beside
}

// idle notes whether a spare stands by on a node.
func (s *seating) idle(node string, spare types.UID, idles bool) {
	if idles && s.idlers[node] == nil {
		s.idlers[node] = map[types.UID]bool{}
	}
	if idles {
		s.idlers[node][spare] = true
	} else {
		delete(s.idlers[node], spare)
	}
	if len(s.idlers[node]) == 0 {
		delete(s.idlers, node)
	}
}

// shardRoom returns how many more shards, up to most, find what they ask for of a node beside GPUs: what spares hold
// that stand by is theirs to use.
func (s *seating) shardRoom(node string, beside *topology.Amounts, most int) int {
	shards := slices.Collect(maps.Keys(s.shards[node]))
	defer s.withShards(node, shards)()
	return s.fleet.RoomBeside(node, beside, most)
}

// crowded reports whether some shards ask for more than there is for them on their node beside GPUs.
func (s *seating) crowded(node string, shards []types.UID) bool {
	defer s.withShards(node, shards)()
	return slices.ContainsFunc(shards, func(pod types.UID) bool {
		return s.fleet.Lacks(node, s.held[pod].beside, 0) != ""
	})
}

// withShards has the fleet count some shards on a node instead of the spares that stand by there, until what it returns
// is called.
func (s *seating) withShards(node string, shards []types.UID) (undo func()) {
	count := func(by int) {
		for spare := range s.idlers[node] {
			s.fleet.Burden(node, s.held[spare].beside, -by)
		}
		for _, pod := range shards {
			s.fleet.Burden(node, s.held[pod].beside, by)
		}
	}
	count(+1)
	return func() { count(-1) }
}
