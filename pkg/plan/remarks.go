package plan

import (
	"fmt"
	"slices"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// Remarks says what whoever submits a Run would rather know of its shape beforehand: what its pods leave over of nodes,
// what its spares come to, and that they do not replace a node. templateGPUs is the GPU request of its template, 0 when
// it has none, and fleet what there is of its type while nobody holds any.
func Remarks(spec *rqv1.RunSpec, templateGPUs int, d Demand, fleet *topology.Blocks) []string {
	return slices.DeleteFunc([]string{stranded(spec, templateGPUs, d, fleet), roundedUp(spec, d), unreplaced(d, fleet)},
		func(text string) bool { return text == "" })
}

// stranded says how many GPUs of a node a Run's pods leave over that no further pod of it could use, where all nodes of
// its type have so many, and which amounts would fill nodes. It is empty where pods fill nodes, and for a Run of one
// pod: others can use what that leaves. Whoever asks for GPUs in a template has chosen the size of pods.
func stranded(spec *rqv1.RunSpec, templateGPUs int, d Demand, fleet *topology.Blocks) string {
	nodeGPUs, same := fleet.Uniform()
	if !same || templateGPUs > 0 || d.GPUsPerPod <= 0 || nodeGPUs < d.GPUsPerPod || d.Pods() < 2 {
		return ""
	}
	over := nodeGPUs % d.GPUsPerPod
	if over == 0 {
		return ""
	}
	unit, what, pods := d.GPUs(), fmt.Sprintf("%d GPUs make", d.GPUs()), d.Pods()
	if d.Confined {
		unit, pods = d.PodsPerGroup*d.GPUsPerPod, d.PodsPerGroup
		what = fmt.Sprintf("groups of %d GPUs make", unit)
	}
	text := fmt.Sprintf("%s %d pods of %d; %d GPUs of each node of %d stay unused", what, pods, d.GPUsPerPod, over,
		nodeGPUs)
	if spec.Resources.GPUsPerPod != nil {
		return fmt.Sprintf("%s; pods of a size that divides %d would fill nodes", text, nodeGPUs)
	}
	least := unit / nodeGPUs * nodeGPUs
	if least == 0 {
		return fmt.Sprintf("%s; %d would fill nodes", text, nodeGPUs)
	}
	return fmt.Sprintf("%s; %d or %d would fill nodes", text, least, least+nodeGPUs)
}

// roundedUp says what spares come to that are not whole pods (R14).
func roundedUp(spec *rqv1.RunSpec, d Demand) string {
	asked, each := int(spec.GroupSpares()), d.SparesPerGroup*d.GPUsPerPod
	if asked == each || d.GPUsPerPod == 0 {
		return ""
	}
	text := fmt.Sprintf("a spare replaces a whole pod, here of %d GPUs: spares of %d are rounded up to %d", d.GPUsPerPod,
		asked, each)
	if d.Groups > 1 {
		text += fmt.Sprintf(" in each of %d groups, %d in all", d.Groups, d.Groups*each)
	}
	return text + ", which are paid for as ranks are, at the rate of spares"
}

// unreplaced says that a node that is lost takes more pods of a group than its spares replace.
func unreplaced(d Demand, fleet *topology.Blocks) string {
	if d.SparesPerGroup == 0 || d.GPUsPerPod == 0 {
		return ""
	}
	node := fleet.Largest()
	takes := min(node/d.GPUsPerPod, d.PodsPerGroup)
	if takes <= d.SparesPerGroup {
		return ""
	}
	return fmt.Sprintf("a lost node of %d GPUs may take %d pods of %d with it, and the spares of a group replace %d: %d "+
		"spare GPUs a group would replace them", node, takes, d.GPUsPerPod, d.SparesPerGroup, takes*d.GPUsPerPod)
}
