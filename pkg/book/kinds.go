package book

import (
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

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

// besideGPUs returns what a pod asks for of its node beside GPUs: resources, its place among the node's pods, and ports
// of the node.
func (k *kinds) besideGPUs(pod *corev1.Pod) *topology.Amounts {
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
