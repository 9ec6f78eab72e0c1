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

// DemandOf returns the shape of a Run. templateGPUs is the GPU request of the Run's template, 0 when it has none; fleet
// is what there is of the flavor while nobody holds any, and payers are asked who pays there; nil where that is not
// known. A Run of a fixed pod size has a shape whatever the nodes are; otherwise a Run of an unknown flavor is refused.
// A malleable Run that desires less than its total has the shape of that width. A spare replaces a pod: spares are
// rounded up to whole pods (R14).
func DemandOf(spec *rqv1.RunSpec, templateGPUs int, fleet *topology.Blocks, payers *Payers) (Demand, *Refusal) {
	d := Demand{Owner: spec.Owner, Flavor: spec.Resources.GPUType}
	if l := spec.Locality; l != nil {
		d.Confined = l.GroupGPUs != nil
		d.OneDomain = l.AllowCrossGroupSpread != nil && !*l.AllowCrossGroupSpread
	}
	switch {
	case spec.Resources.GPUsPerPod != nil:
		return d.inPods(spec, int(*spec.Resources.GPUsPerPod))
	case templateGPUs > 0:
		return d.inPods(spec, templateGPUs)
	case fleet.Largest() == 0:
		return d, UnknownType(d)
	}
	return d.inPods(spec, d.podSize(spec, fleet, payers))
}

// widthsOf returns the widths of a Run, of which each is a whole number of pods: its total and the size of a group
// first.
func widthsOf(spec *rqv1.RunSpec) []int {
	total := int(spec.Resources.TotalGPUs)
	widths := []int{total, total}
	if l := spec.Locality; l != nil && l.GroupGPUs != nil {
		widths[1] = int(*l.GroupGPUs)
	}
	if m := spec.Malleable; m != nil {
		widths = append(widths, int(m.MinTotalGPUs), int(m.StepGPUs))
	}
	return widths
}

// inPods returns the shape of a Run whose pods have a size.
func (d Demand) inPods(spec *rqv1.RunSpec, size int) (Demand, *Refusal) {
	widths := widthsOf(spec)
	if spec.Opportunistic {
		return d.inShards(spec, size, widths)
	}
	total, group := widths[0], widths[1]
	if !divides(size, widths) || total%group != 0 {
		return d, &Refusal{Reason: Indivisible, Owner: d.Owner, Flavor: d.Flavor, WantedGPUs: total,
			Message: indivisible(spec, size, total, group)}
	}
	d.GPUsPerPod = size
	d.Groups, d.PodsPerGroup = total/group, group/size
	d.SparesPerGroup = (int(spec.GroupSpares()) + size - 1) / size
	d.LeastPods = d.Pods()
	if m := spec.Malleable; m != nil {
		d.LeastPods, d.StepPods = int(m.MinTotalGPUs)/size, int(m.StepGPUs)/size
		d = d.At(min(total, int(spec.Desired())) / size) // it would shrink at once
	}
	return d, nil
}

// inShards returns the shape of an opportunistic Run: as many shards of one pod as it desires, each a group of its own,
// any number of which may run (R15).
func (d Demand) inShards(spec *rqv1.RunSpec, size int, widths []int) (Demand, *Refusal) {
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

// divides reports whether all widths are whole numbers of pods.
func divides(size int, widths []int) bool {
	return !slices.ContainsFunc(widths, func(width int) bool { return width%size != 0 })
}

// indivisible says which widths pods of a size do not divide, and what to change.
func indivisible(spec *rqv1.RunSpec, size, total, group int) string {
	fields := "gpusPerPod, groupGPUs or totalGPUs"
	text := fmt.Sprintf("pods of %d GPUs do not divide groups of %d and a total of %d GPUs", size, group, total)
	if m := spec.Malleable; m != nil {
		text += fmt.Sprintf(", a least width of %d and steps of %d", m.MinTotalGPUs, m.StepGPUs)
		fields = "gpusPerPod, groupGPUs, totalGPUs or malleable"
	}
	return text + "; change " + fields
}
