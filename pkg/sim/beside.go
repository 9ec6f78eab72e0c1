package sim

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// SetBystander makes or changes a pod that is no Run's and holds no GPUs.
func (c *Cluster) SetBystander(pod *corev1.Pod) {
	c.Bystanders[pod.UID] = pod
	for uid, m := range c.Pods {
		if m.Spec.NodeName == "" && c.Book.Assigned(uid) == pod.Spec.NodeName {
			c.surprised[uid] = true
		}
	}
	c.Book.SetPod(pod)
}

// DropBystander removes such a pod.
func (c *Cluster) DropBystander(uid types.UID) {
	pod := c.Bystanders[uid]
	delete(c.Bystanders, uid)
	c.Book.DeletePod(pod)
}

// lacks says in kube-scheduler's words what a node lacks that a pod asks for beside GPUs; empty when nothing.
func (c *Cluster) lacks(pod *corev1.Pod, name string) string {
	node := c.Nodes[name]
	if node == nil || len(node.Status.Allocatable) < 2 {
		return ""
	}
	cpu := node.Status.Allocatable.Cpu().MilliValue()
	var ports []corev1.ContainerPort
	occupy := func(other *corev1.Pod) {
		for i := range other.Spec.Containers {
			cpu -= other.Spec.Containers[i].Resources.Requests.Cpu().MilliValue()
			ports = append(ports, other.Spec.Containers[i].Ports...)
		}
	}
	for _, other := range c.Bystanders {
		if other.Spec.NodeName == name {
			occupy(other)
		}
	}
	for uid, other := range c.Pods {
		_, binds := c.Binding[uid]
		assumed := (binds || c.Waiting.Has(uid)) && c.Book.Assigned(uid) == name
		if uid != pod.UID && !rank.Ended(other) && (other.Spec.NodeName == name || assumed) {
			occupy(other)
		}
	}
	for i := range pod.Spec.Containers {
		for _, p := range pod.Spec.Containers[i].Ports {
			if slices.ContainsFunc(ports, func(o corev1.ContainerPort) bool { return conflict(p, o) }) {
				return "node(s) didn't have free ports for the requested pod ports"
			}
		}
	}
	left := cpu
	if occupy(pod); cpu < left && cpu < 0 {
		return "Insufficient cpu"
	}
	return ""
}

// conflict reports whether two ports of a node are the same on some address.
func conflict(x, y corev1.ContainerPort) bool {
	return x.HostPort == y.HostPort && (x.HostIP == y.HostIP || x.HostIP == "" || y.HostIP == "")
}

// turnsDown says why the rules of other schedulers turn a pod down from a node; empty when they do not. What the book
// could know it must have known: all but what has come since the pod was placed.
func (c *Cluster) turnsDown(pod *corev1.Pod, node string) string {
	if why := c.rejects(pod, node); why != "" {
		return why
	}
	if why, _ := c.among(pod, node, nil, nil); why != "" {
		return why
	}
	if why, _ := c.beyond(pod, node, "", nil); why != "" {
		return why
	}
	why := c.lacks(pod, node)
	if why != "" && !c.surprised[pod.UID] {
		c.violated("R31: pod %s was placed on %s: %s", pod.Name, node, why)
	}
	return why
}
