package book

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// nodeSize is how many GPUs a node has, and of which of the resources that are counted: one of them, or several in
// words.
type nodeSize struct {
	resource string
	gpus     int
}

func (t *nodeTable) sizeOf(node *corev1.Node) nodeSize {
	return nodeSize{t.args.GPUResource.On(node), t.gpusOf(node)}
}

// resourceOf returns the resource that the GPUs of a flavor are, and that its Runs' pods request: what most of its
// nodes have, and the one that is named first of several that as many have. Whatever else nodes have does not count.
func (t *nodeTable) resourceOf(flavor string) string {
	return cmp.Or(t.counted[flavor], t.args.GPUResource[0])
}

// count works out what the resource of a flavor is, and reports whether it was another.
func (t *nodeTable) count(flavor string) bool {
	was, is, most := t.resourceOf(flavor), t.args.GPUResource[0], 0
	for _, resource := range t.args.GPUResource {
		nodes := 0
		for size, n := range t.sizes[flavor] {
			if size.resource == resource {
				nodes += n
			}
		}
		if nodes > most {
			is, most = resource, nodes
		}
	}
	t.counted[flavor] = is
	return is != was
}

// unfit says why a node takes no part for what it has; empty where it may.
func (t *nodeTable) unfit(node *corev1.Node) string {
	flavor, has := t.flavorOf(node), t.args.GPUResource.On(node)
	switch of := t.resourceOf(flavor); {
	case has == "" || has == of:
		return ""
	case !slices.Contains(t.args.GPUResource, has):
		return fmt.Sprintf("it offers %s, but jobtree counts one resource on a node: configure its device plugins to "+
			"offer one of them",
			has)
	case flavor != "":
		return fmt.Sprintf("it offers %s, but other nodes of GPU type %q offer %s: correct label %q", has, flavor, of,
			t.args.FlavorLabel)
	}
	return ""
}

// recount has a flavor be counted in the resource that its nodes have. Where that was another, all of its nodes are
// looked at again, and all of its Runs that have not started.
func (b *Book) recount(flavor string) {
	if !b.nodes.count(flavor) {
		return
	}
	for name, node := range b.nodes.ofFlavor[flavor] {
		domain := b.fleet.DomainOf(name)
		b.nodes.setInFleet(node)
		b.nodes.stray(name, domain)
	}
	b.shapes.reshapeAll(flavor)
	b.waiting.wakeNodes(flavor)
}

// asksFor returns the first of the resources that are counted which a pod requests; empty when it requests none.
func (t *nodeTable) asksFor(pod *corev1.Pod) string { return t.asksBut(pod, "") }

// asksBut is asksFor but for one of the resources.
func (t *nodeTable) asksBut(pod *corev1.Pod, but string) string {
	i := slices.IndexFunc(t.args.GPUResource, func(resource string) bool {
		return resource != but && rank.PodGPUs(&pod.Spec, resource) > 0
	})
	if i < 0 {
		return ""
	}
	return t.args.GPUResource[i]
}

// unserved says that a pod asks for GPUs, or for parts of them, that nobody counts, so that nobody could pay for them.
// It is empty where it asks for none.
func (t *nodeTable) unserved(pod *corev1.Pod) string {
	whole := strings.Join(t.args.GPUResource, " or ")
	if asks := t.args.GPUResource.NotCounted(&pod.Spec); asks != "" {
		return fmt.Sprintf("pod %s asks for %s, which jobtree does not count, so that nobody can pay for it: request %s, "+
			"ask an administrator whether gpuResource is to name it, or leave the pod to another scheduler (spec.schedulerName)",
			pod.Name, asks, whole)
	}
	if part := config.PortionOf(pod); part != "" {
		return fmt.Sprintf("pod %s asks for a part of a GPU by %s, which jobtree does not count, so that nobody can pay for "+
			"it: create it anew without the annotation, with a request for %s if it needs GPUs, or leave it to another "+
			"scheduler (spec.schedulerName)", pod.Name, part, whole)
	}
	return ""
}

// mistaken refuses a Run whose pod template asks for another resource than the nodes of its type have; nil where it
// does not, or there are no such nodes.
func (t *nodeTable) mistaken(pod *corev1.Pod, d plan.Demand) *plan.Refusal {
	of := t.resourceOf(d.Flavor)
	other := cmp.Or(t.asksBut(pod, of), t.args.GPUResource.NotCounted(&pod.Spec))
	if other == "" || t.gpusOfAll(d.Flavor) == 0 {
		return nil
	}
	return plan.OtherResource(d, fmt.Sprintf("spec.template requests %s, but nodes of type %s offer %s: request that "+
		"in spec.template.spec.containers[].resources.limits, leave it out, or correct spec.resources.gpuType",
		other, d.Flavor, of))
}
