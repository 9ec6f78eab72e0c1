package plan

import (
	"fmt"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Stranded says how many GPUs of a node a Run's pods leave over that no further pod of it could use, where all nodes of
// its type have so many, and which amounts would fill nodes. It is empty where pods fill nodes, and for a Run of one
// pod: others can use what that leaves.
func Stranded(spec *rqv1.RunSpec, d Demand, nodeGPUs int) string {
	if d.GPUsPerPod <= 0 || nodeGPUs < d.GPUsPerPod || d.Pods() < 2 {
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
