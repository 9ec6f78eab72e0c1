package plan

import (
	"fmt"
	"slices"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// Demand is the shape of a Run: how many groups of how many pods of how many GPUs (R12, R14).
type Demand struct {
	Owner      rqv1.Owner
	Flavor     string
	GPUsPerPod int
	// Beside is what each pod asks for of its node beside GPUs; a spare holds as much for its rank (R38).
	Beside *topology.Amounts
	// Groups is the number of groups, PodsPerGroup the number of active pods in each, and SparesPerGroup that of its spare
	// pods.
	Groups, PodsPerGroup, SparesPerGroup int
	// Confined says that each group lies in one fast-fabric domain.
	Confined bool
	// OneDomain says that all groups lie in the same domain.
	OneDomain bool
	// LeastPods is the least width of the Run, and StepPods the least change of it, in active pods (R16). A fixed Run has
	// its total, and no step.
	LeastPods, StepPods int
}

// Pods returns the number of active pods of the whole Run.
func (d Demand) Pods() int { return d.Groups * d.PodsPerGroup }

// Spares returns the number of spare pods of the whole Run.
func (d Demand) Spares() int { return d.Groups * d.SparesPerGroup }

// GPUs returns the number of GPUs of the whole Run, spares apart.
func (d Demand) GPUs() int { return d.Pods() * d.GPUsPerPod }

// HeldGPUs returns the number of GPUs that the whole Run holds, spares and all.
func (d Demand) HeldGPUs() int { return (d.Pods() + d.Spares()) * d.GPUsPerPod }

// GroupOf returns the group of the active pod with an index.
func (d Demand) GroupOf(index int) int { return index / d.PodsPerGroup }

// Group returns the group of a pod: spares are counted by themselves.
func (d Demand) Group(p rank.Part) int {
	if p.Spare {
		return p.Index / d.SparesPerGroup
	}
	return d.GroupOf(p.Index)
}

// DemandOf returns the shape of a Run. templateGPUs is the GPU request of the Run's template, 0 when it has none;
// nodeGPUs is the number of GPUs of the largest node of the flavor, 0 when there is no such node. A Run of a fixed pod
// size has a shape whatever the nodes are; otherwise a Run of an unknown flavor is refused. A malleable Run that
// desires less than its total has the shape of that width.
func DemandOf(spec *rqv1.RunSpec, templateGPUs, nodeGPUs int) (Demand, *Refusal) {
	d := Demand{Owner: spec.Owner, Flavor: spec.Resources.GPUType}
	total := int(spec.Resources.TotalGPUs)
	group := total
	if l := spec.Locality; l != nil {
		if l.GroupGPUs != nil {
			group = int(*l.GroupGPUs)
			d.Confined = true
		}
		d.OneDomain = l.AllowCrossGroupSpread != nil && !*l.AllowCrossGroupSpread
	}
	spares := int(spec.GroupSpares())
	widths := []int{total, group}
	if m := spec.Malleable; m != nil {
		widths = append(widths, int(m.MinTotalGPUs), int(m.StepGPUs))
	}
	widths = append(widths, spares)
	size, refusal := podSize(spec, d, widths, templateGPUs, nodeGPUs)
	if refusal != nil {
		return d, refusal
	}
	if spec.Opportunistic {
		return shardsOf(spec, d, size, widths)
	}
	if !divides(size, widths) || total%group != 0 {
		return d, &Refusal{Reason: Indivisible, Owner: d.Owner, Flavor: d.Flavor, WantedGPUs: total,
			Message: indivisible(spec, size, total, group, spares)}
	}
	d.GPUsPerPod = size
	d.Groups, d.PodsPerGroup, d.SparesPerGroup = total/group, group/size, spares/size
	d.LeastPods = d.Pods()
	if m := spec.Malleable; m != nil {
		d.LeastPods, d.StepPods = int(m.MinTotalGPUs)/size, int(m.StepGPUs)/size
		d = d.At(min(total, int(spec.Desired())) / size) // it would shrink at once
	}
	return d, nil
}

// shardsOf returns the shape of an opportunistic Run: as many shards of one pod as it desires, each a group of its own,
// any number of which may run (R15).
func shardsOf(spec *rqv1.RunSpec, d Demand, size int, widths []int) (Demand, *Refusal) {
	desired := int(spec.Desired())
	if l := spec.Locality; l != nil && l.GroupGPUs != nil && int(*l.GroupGPUs) != size || !divides(size, widths) {
		return d, &Refusal{Reason: Indivisible, Owner: d.Owner, Flavor: d.Flavor, WantedGPUs: desired,
			Message: fmt.Sprintf("each shard of an opportunistic Run is one pod, here of %d GPUs, and every width must be a "+
				"multiple of that; change gpusPerPod, groupGPUs, totalGPUs or malleable", size)}
	}
	d.GPUsPerPod = size
	d.Groups, d.PodsPerGroup, d.Confined = desired/size, 1, true
	d.LeastPods = 1
	return d, nil
}

// podSize returns the GPUs of one pod: what the Run says, else what its template requests, else the largest size that
// divides every width and fits a node (R14).
func podSize(spec *rqv1.RunSpec, d Demand, widths []int, templateGPUs, nodeGPUs int) (int, *Refusal) {
	switch {
	case spec.Resources.GPUsPerPod != nil:
		return int(*spec.Resources.GPUsPerPod), nil
	case templateGPUs > 0:
		return templateGPUs, nil
	case nodeGPUs == 0:
		return 0, UnknownType(d)
	}
	size := min(widths[1], nodeGPUs)
	for !divides(size, widths) {
		size--
	}
	return size, nil
}

// divides reports whether all widths are whole numbers of pods.
func divides(size int, widths []int) bool {
	return !slices.ContainsFunc(widths, func(width int) bool { return width%size != 0 })
}

// indivisible says which widths pods of a size do not divide, and what to change.
func indivisible(spec *rqv1.RunSpec, size, total, group, spares int) string {
	fields := "gpusPerPod, groupGPUs or totalGPUs"
	text := fmt.Sprintf("pods of %d GPUs do not divide groups of %d and a total of %d GPUs", size, group, total)
	if m := spec.Malleable; m != nil {
		text += fmt.Sprintf(", a least width of %d and steps of %d", m.MinTotalGPUs, m.StepGPUs)
		fields = "gpusPerPod, groupGPUs, totalGPUs or malleable"
	}
	if spares > 0 {
		text += fmt.Sprintf(", and %d spares a group", spares)
		fields += " or sparesPerGroup"
	}
	return text + "; change " + fields
}
