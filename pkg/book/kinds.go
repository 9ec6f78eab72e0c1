package book

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"weak"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// kinds keeps one record of what pods ask for beside GPUs for all pods that ask for the same: shapes are compared by
// it, and there is a pod of everybody's on each node.
type kinds struct {
	gpus   config.Resources
	shared map[string]weak.Pointer[topology.Amounts] // as long as somebody has them
	untidy int                                       // once there are so many, some may be of no use any more
}

// mostAsked is how many resources and ports of a pod are looked at beside those that every node has. No pod asks for as
// many in earnest: of one that does, kube-scheduler's own rules find the rest.
const mostAsked = 100

// besideGPUs returns what a pod asks for of its node beside GPUs: resources, its place among the node's pods, and ports
// of the node.
func (k *kinds) besideGPUs(pod *corev1.Pod) *topology.Amounts {
	amounts := map[string]int64{string(corev1.ResourcePods): 1}
	for resource, quantity := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
		UseStatusResources: true}) {
		if !k.gpus.Counts(resource) {
			amounts[string(resource)] += amountOf(resource, quantity)
		}
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if rank.IsSidecar(c) {
			addPorts(amounts, pod, c)
		}
	}
	for i := range pod.Spec.Containers {
		addPorts(amounts, pod, &pod.Spec.Containers[i])
	}
	if len(amounts) > mostAsked {
		rare := slices.DeleteFunc(slices.Sorted(maps.Keys(amounts)), func(resource string) bool {
			return slices.Contains(common, corev1.ResourceName(resource))
		})
		for _, resource := range rare[min(mostAsked, len(rare)):] {
			delete(amounts, resource)
		}
	}
	return k.share(topology.NewAmounts(amounts))
}

// common are the resources that every node has.
var common = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
	corev1.ResourcePods}

func (k *kinds) share(a *topology.Amounts) *topology.Amounts {
	var key strings.Builder
	for _, x := range a.All() {
		key.WriteString(x.Resource + "=" + strconv.FormatInt(x.N, 10) + ";")
	}
	if known := k.shared[key.String()].Value(); known != nil {
		return known
	}
	if k.shared == nil {
		k.shared = map[string]weak.Pointer[topology.Amounts]{}
	}
	if len(k.shared) >= k.untidy {
		maps.DeleteFunc(k.shared, func(_ string, of weak.Pointer[topology.Amounts]) bool { return of.Value() == nil })
		k.untidy = 2*len(k.shared) + 1000
	}
	k.shared[key.String()] = weak.Make(a)
	return a
}

// addPorts adds the ports of the node that a container asks for. A pod on the node's network has those of its
// containers, also where no API server has said so yet. One without an address is meant on all of them.
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
			whole, at := topology.Port(string(protocol), port), topology.PortAt(string(protocol), port, p.HostIP)
			switch {
			case p.HostIP == "" || p.HostIP == "0.0.0.0":
				amounts[whole] = topology.AllOfAPort
			case amounts[at] == 0:
				amounts[at] = 1
				amounts[whole] = min(amounts[whole]+1, topology.AllOfAPort)
			}
		}
	}
}

// amountOf counts CPU in thousandths and all else in its units: never less than nothing, nor so much that the sums of a
// node would pass what can be counted.
func amountOf(name corev1.ResourceName, quantity resource.Quantity) int64 {
	const most = 1 << 50
	switch {
	case quantity.Sign() < 0:
		return 0
	case quantity.CmpInt64(most/1000) <= 0 && name == corev1.ResourceCPU:
		return quantity.MilliValue()
	case quantity.CmpInt64(most) <= 0 && name != corev1.ResourceCPU:
		return quantity.Value()
	}
	return most
}

// besideOn returns what a node has for pods beside GPUs.
func (k *kinds) besideOn(node *corev1.Node) *topology.Amounts {
	amounts := map[string]int64{string(corev1.ResourcePods): math.MaxInt32} // unless it says
	for resource, quantity := range node.Status.Allocatable {
		if !k.gpus.Counts(resource) {
			amounts[string(resource)] = amountOf(resource, quantity)
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
