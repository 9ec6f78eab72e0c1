package plan

import (
	"testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// widest is the most that the schema lets any width be.
const widest = 1000000

// FuzzDemand: whatever widths the schema lets somebody write, a Run has a shape or is told why not; the shape has whole
// pods that add up to the width, and no more of them than GPUs.
func FuzzDemand(f *testing.F) {
	f.Fuzz(func(t *testing.T, total, pod, group, spares, least, most, step, desired, template, node int32, flags uint8) {
		spec := specOf(total, pod, group, spares, least, most, step, desired, flags)
		asks, there := int(within(template, 0, 9999)), manyOf(int(within(node, 0, 1024)))
		d, refusal := DemandOf(spec, asks, there, nil)
		if again, other := DemandOf(spec, asks, there, nil); d != again || (other == nil) != (refusal == nil) {
			t.Errorf("first %+v, then %+v", d, again)
		}
		if refusal != nil {
			if refusal.Message == "" || refusal.Reason == "" {
				t.Errorf("refused without a word: %+v", refusal)
			}
			return
		}
		wide := min(spec.Resources.TotalGPUs, spec.Desired())
		if spec.Opportunistic {
			wide = spec.Desired()
		}
		if d.GPUsPerPod < 1 || d.Pods() < 1 || d.GPUs() != int(wide) || d.Pods() > widest || d.Spares() > widest {
			t.Errorf("%+v has the shape %+v", spec, d)
		}
		if d.Least().Pods() != d.LeastPods || d.LeastPods < 1 || d.Spares() < 0 {
			t.Errorf("%+v is at least %d pods, and its narrowest shape is %+v", spec, d.LeastPods, d.Least())
		}
		for _, index := range []int{0, d.Pods() - 1} {
			if g := d.GroupOf(index); g < 0 || g >= d.Groups {
				t.Errorf("pod %d of %+v is in group %d", index, d, g)
			}
		}
	})
}

// within puts a number between two bounds, both included.
func within(n, low, high int32) int32 {
	if n < low || n > high {
		return low + int32(uint32(n)%uint32(high-low+1))
	}
	return n
}

// specOf is a spec that the rules of the schema let pass, but for those about gpusPerPod: each number is in its range,
// each width is a whole number of steps from the least and of groups, and the spares are no more than a group.
func specOf(total, pod, group, spares, least, most, step, desired int32, flags uint8) *rqv1.RunSpec {
	spec := &rqv1.RunSpec{Owner: "org:a", Resources: rqv1.RunResources{GPUType: "H100"}, Opportunistic: flags&16 != 0}
	unit := int32(1)
	if flags&2 != 0 {
		unit = within(group, 1, widest)
		spec.Locality = &rqv1.RunLocality{GroupGPUs: &unit, AllowCrossGroupSpread: ptr(flags&4 != 0)}
	}
	spec.Resources.TotalGPUs = unit * within(total, 1, widest/unit)
	if flags&1 != 0 {
		spec.Resources.GPUsPerPod = ptr(within(pod, 1, 1024))
	}
	if flags&32 != 0 {
		m := &rqv1.RunMalleable{MinTotalGPUs: unit * within(least, 1, widest/unit),
			StepGPUs: unit * within(step, 1, widest/unit)}
		steps := (widest - m.MinTotalGPUs) / m.StepGPUs
		m.MaxTotalGPUs = m.MinTotalGPUs + within(most, 0, steps)*m.StepGPUs
		steps = (m.MaxTotalGPUs - m.MinTotalGPUs) / m.StepGPUs
		spec.Resources.TotalGPUs = m.MinTotalGPUs + within(total, 0, steps)*m.StepGPUs
		if flags&64 != 0 {
			m.DesiredTotalGPUs = ptr(m.MinTotalGPUs + within(desired, 0, steps)*m.StepGPUs)
		}
		spec.Malleable = m
	}
	if flags&8 != 0 {
		most := spec.Resources.TotalGPUs
		if spec.Locality != nil {
			most = unit
		}
		spec.SparesPerGroup = ptr(within(spares, 0, most))
	}
	return spec
}
