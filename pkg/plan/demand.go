package plan

import (
	"fmt"
	"strings"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Demand is the shape of a Run: how many groups of how many pods of how many GPUs (R12, R14).
type Demand struct {
	Owner      rqv1.Owner
	Flavor     string
	GPUsPerPod int
	// Groups is the number of groups, and PodsPerGroup the number of pods in each.
	Groups, PodsPerGroup int
	// Confined says that each group lies in one fast-fabric domain.
	Confined bool
	// OneDomain says that all groups lie in the same domain.
	OneDomain bool
}

// Pods returns the number of pods of the whole Run.
func (d Demand) Pods() int { return d.Groups * d.PodsPerGroup }

// GPUs returns the number of GPUs of the whole Run.
func (d Demand) GPUs() int { return d.Pods() * d.GPUsPerPod }

// GroupOf returns the group of the pod with an index.
func (d Demand) GroupOf(index int) int { return index / d.PodsPerGroup }

// DemandOf returns the shape of a Run. templateGPUs is the GPU request of the Run's template, 0 when it has none;
// nodeGPUs is the number of GPUs of the largest node of the flavor, 0 when there is no such node. A Run of a fixed pod
// size has a shape whatever the nodes are; otherwise a Run of an unknown flavor is refused.
func DemandOf(spec *rqv1.RunSpec, templateGPUs, nodeGPUs int) (Demand, *Refusal) {
	d := Demand{Owner: spec.Owner, Flavor: spec.Resources.GPUType}
	if field := unserved(spec); field != "" {
		return d, &Refusal{Reason: Unsupported, Owner: d.Owner, Flavor: d.Flavor,
			Message: fmt.Sprintf("%s is not served by this version; remove it to start the Run", field)}
	}
	total := int(spec.Resources.TotalGPUs)
	group := total
	if l := spec.Locality; l != nil {
		if l.GroupGPUs != nil {
			group = int(*l.GroupGPUs)
			d.Confined = true
		}
		d.OneDomain = l.AllowCrossGroupSpread != nil && !*l.AllowCrossGroupSpread
	}
	size, refusal := podSize(spec, d, total, group, templateGPUs, nodeGPUs)
	if refusal != nil {
		return d, refusal
	}
	if group%size != 0 || total%group != 0 {
		return d, &Refusal{Reason: Indivisible, Owner: d.Owner, Flavor: d.Flavor, WantedGPUs: total,
			Message: fmt.Sprintf("pods of %d GPUs do not divide groups of %d and a total of %d GPUs; change gpusPerPod, groupGPUs or totalGPUs", size, group, total)}
	}
	d.GPUsPerPod, d.PodsPerGroup, d.Groups = size, group/size, total/group
	return d, nil
}

// podSize returns the GPUs of one pod: what the Run says, else what its template requests, else the largest size that
// divides the group and fits a node (R14).
func podSize(spec *rqv1.RunSpec, d Demand, total, group, templateGPUs, nodeGPUs int) (int, *Refusal) {
	switch {
	case spec.Resources.GPUsPerPod != nil:
		return int(*spec.Resources.GPUsPerPod), nil
	case templateGPUs > 0:
		return templateGPUs, nil
	case nodeGPUs == 0:
		return 0, UnknownType(d)
	}
	for size := min(group, nodeGPUs); size > 1; size-- {
		if group%size == 0 {
			return size, nil
		}
	}
	return 1, nil
}

// unserved names the fields of a Run whose behaviour this version does not have. Such a Run waits rather than being half
// served.
func unserved(spec *rqv1.RunSpec) string {
	var fields []string
	if spec.Malleable != nil {
		fields = append(fields, "spec.malleable")
	}
	if positive(spec.SparesPerGroup) || positive(spec.Spares) {
		fields = append(fields, "spec.sparesPerGroup")
	}
	if spec.Runtime != nil && spec.Runtime.MaxDuration != nil {
		fields = append(fields, "spec.runtime.maxDuration")
	}
	if spec.Opportunistic {
		fields = append(fields, "spec.opportunistic")
	}
	return strings.Join(fields, ", ")
}

func positive(n *int32) bool { return n != nil && *n > 0 }
