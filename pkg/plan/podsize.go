package plan

import (
	"sort"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// podSize returns the GPUs of one pod where neither the Run nor its template says how many: the largest size that
// divides every width and with which the Run fits the fleet while nobody holds any of it, at its total, or else at the
// widest width that any size allows. If none allows any, it is the largest that divides and fits a node (R14).
func (d Demand) podSize(spec *rqv1.RunSpec, fleet *topology.Blocks) int {
	widths := widthsOf(spec)
	largest, best, widest := 0, 0, 0
	for size := min(widths[1], fleet.Largest()); size > 0; size-- {
		if !divides(size, widths) {
			continue
		}
		shape, refusal := d.inPods(spec, size)
		if refusal != nil {
			continue
		}
		if largest == 0 {
			largest = size
		}
		width := shape.widestIn(fleet)
		if width > widest {
			best, widest = size, width
		}
		if width == shape.GPUs() {
			break
		}
	}
	switch {
	case best > 0:
		return best
	case largest > 0:
		return largest
	}
	return 1 // its groups do not divide its total: it is refused for that
}

// Outgrown reports whether a Run that waits with pods of a size fits no fleet of nodes such as there are by now, at any
// of its widths, and would with pods of another size, which neither it nor its template fixes.
func Outgrown(spec *rqv1.RunSpec, d Demand, fleet *topology.Blocks) bool {
	if d.GPUsPerPod == 0 || d.widestIn(fleet) > 0 {
		return false
	}
	other, refusal := DemandOf(spec, 0, fleet)
	return refusal == nil && other.GPUsPerPod != d.GPUsPerPod && other.widestIn(fleet) > 0
}

// widestIn returns the widest width up to the Run's total, in GPUs, at which it fits a fleet; 0 if it fits at none.
func (d Demand) widestIn(fleet *topology.Blocks) int {
	if d.fits(fleet) {
		return d.GPUs()
	}
	step := d.StepPods
	if d.LeastPods < d.Pods() {
		step = max(step, 1) // any number of shards may run
	}
	if step == 0 || !d.Least().fits(fleet) {
		return 0
	}
	steps := (d.Pods() - d.LeastPods) / step
	wider := sort.Search(steps, func(n int) bool { return !d.At(d.LeastPods + (n+1)*step).fits(fleet) })
	return d.At(d.LeastPods + wider*step).GPUs()
}

// fits reports whether a fleet has room for all pods of the Run, spares and all, wherever its groups may lie (R12).
func (d Demand) fits(fleet *topology.Blocks) bool {
	switch pods := d.Pods() + d.Spares(); {
	case d.OneDomain:
		return fleet.Fit(topology.Block{Pods: pods, GPUsPerPod: d.GPUsPerPod}, 1)
	case d.Confined:
		return fleet.Fit(topology.Block{Pods: d.PodsPerGroup + d.SparesPerGroup, GPUsPerPod: d.GPUsPerPod}, d.Groups)
	default:
		return fleet.Fit(topology.Block{Pods: 1, GPUsPerPod: d.GPUsPerPod}, pods)
	}
}
