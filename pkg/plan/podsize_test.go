package plan

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// drawMixed draws a fleet of nodes of 8, 4, 2 and 1 GPUs in a few domains, as it is, and as it would be if nobody used
// it: some nodes are cordoned, some are in use, some are left out.
func drawMixed(t *rapid.T) (fleet, empty *topology.Fleet) {
	levels := []string{"region", "fabric"}
	fleet, empty = topology.NewFleet(levels, "fabric"), topology.NewFleet(levels, "fabric")
	for n := range rapid.IntRange(1, 7).Draw(t, "nodes") {
		node := topology.Node{Name: fmt.Sprint("n", n), Flavor: "H100",
			GPUs: rapid.SampledFrom([]int{8, 8, 4, 4, 2, 1}).Draw(t, "size"),
			Labels: map[string]string{"region": "r", "pool": rapid.SampledFrom([]string{"small", "large"}).Draw(t, "pool"),
				"fabric": rapid.SampledFrom([]string{"a", "a", "b", "c"}).Draw(t, "domain")}}
		if rapid.IntRange(0, 9).Draw(t, "left out") == 0 {
			delete(node.Labels, "fabric")
		}
		empty.SetNode(node)
		node.Unschedulable = rapid.IntRange(0, 3).Draw(t, "cordoned") == 0
		fleet.SetNode(node)
		if gpus := rapid.IntRange(0, node.GPUs).Draw(t, "used"); gpus > 0 {
			fleet.Take(node.Name, gpus)
		}
	}
	return fleet, empty
}

// drawUnsized draws a Run that leaves the size of its pods to the fleet.
func drawUnsized(t *rapid.T) *rqv1.RunSpec {
	unit := rapid.SampledFrom([]int32{1, 2, 3, 4, 6, 8, 16}).Draw(t, "unit")
	groups := rapid.Int32Range(1, 4).Draw(t, "groups")
	s := &rqv1.RunSpec{Owner: "org:a", Resources: rqv1.RunResources{GPUType: "H100", TotalGPUs: unit * groups}}
	if rapid.Bool().Draw(t, "confined") {
		s.Locality = &rqv1.RunLocality{GroupGPUs: &unit}
	}
	if rapid.IntRange(0, 3).Draw(t, "one domain") == 0 {
		if s.Locality == nil {
			s.Locality = &rqv1.RunLocality{}
		}
		s.Locality.AllowCrossGroupSpread = ptr(false)
	}
	if groups > 1 && rapid.Bool().Draw(t, "malleable") {
		most := groups + rapid.Int32Range(0, 3).Draw(t, "beyond its total")
		s.Malleable = &rqv1.RunMalleable{MinTotalGPUs: unit, MaxTotalGPUs: unit * most, StepGPUs: unit}
		if rapid.Bool().Draw(t, "desires") {
			s.Malleable.DesiredTotalGPUs = ptr(unit * rapid.Int32Range(1, most).Draw(t, "desired"))
		}
	}
	if rapid.Bool().Draw(t, "spares") {
		s.SparesPerGroup = ptr(rapid.Int32Range(0, unit).Draw(t, "spare GPUs"))
	}
	return s
}

// TestPodSizeAgainstEverySize holds the size of pods to all that there are, each packed at each width: the one with
// which the Run's ranks fit the fleet while nobody uses it, at its total or else at the widest width, and of equal
// widths the largest (R14).
func TestPodSizeAgainstEverySize(t *testing.T) {
	seen := map[string]int{}
	for seed := range 300 { // which hold each kind, whatever is drawn besides
		seen[rapid.Custom(sizeAgainstEverySize).Example(seed)]++
	}
	for _, kind := range []string{"smaller pods", "narrower", "does not fit"} {
		if seen[kind] == 0 {
			t.Errorf("of %v none is %s", seen, kind)
		}
	}
	rapid.Check(t, func(t *rapid.T) { sizeAgainstEverySize(t) })
}

// sizedAt returns a Run with pods of a size, at its total, whatever width it desires.
func sizedAt(spec *rqv1.RunSpec, size int) *rqv1.RunSpec {
	sized := spec.DeepCopy()
	sized.Resources.GPUsPerPod = ptr(int32(size))
	if m := sized.Malleable; m != nil {
		m.DesiredTotalGPUs = &sized.Resources.TotalGPUs
	}
	return sized
}

// sizeAgainstEverySize draws a fleet and a Run, and returns how the Run fits there.
func sizeAgainstEverySize(t *rapid.T) (kind string) {
	fleet, empty := drawMixed(t)
	spec := drawUnsized(t)
	if rapid.IntRange(0, 3).Draw(t, "opportunistic") == 0 {
		spec.Opportunistic, spec.Locality, spec.SparesPerGroup = true, nil, nil
	}
	best, widest, largest := 0, 0, 0
	for size := 8; size > 0; size-- {
		d, refusal := DemandOf(sizedAt(spec, size), 0, fleet.Whole("H100"), nil)
		if refusal != nil || size > fleet.Whole("H100").Largest() {
			continue
		}
		largest, d.SparesPerGroup = max(largest, size), 0
		for width := d.Pods(); width >= d.LeastPods && width*size > widest; width -= max(d.StepPods, 1) {
			if at := d.At(width); packs(empty, at) {
				best, widest = size, at.GPUs()
			}
		}
	}
	got, refusal := DemandOf(spec, 0, fleet.Whole("H100"), nil)
	switch {
	case largest == 0 && refusal != nil && refusal.Reason == UnknownGPUType:
		return "refused"
	case refusal != nil:
		t.Fatalf("%s: %s", refusal.Reason, refusal.Message)
	case best == 0:
		best, kind = largest, "does not fit"
	case best < largest:
		kind = "smaller pods"
	case widest < int(spec.Resources.TotalGPUs):
		kind = "narrower"
	}
	if got.GPUsPerPod != best {
		t.Fatalf("pods of %d; want %d, with which it has %d GPUs", got.GPUsPerPod, best, widest)
	}
	if spares := got.SparesPerGroup * best; spares < int(spec.GroupSpares()) || spares >= int(spec.GroupSpares())+best {
		t.Fatalf("%d spares of %d for %d", got.SparesPerGroup, best, spec.GroupSpares())
	}
	return kind
}

// packs reports whether a Run of a shape fits a fleet.
func packs(f *topology.Fleet, d Demand) bool {
	_, short := f.Pack(topology.Request{Flavor: d.Flavor, GPUsPerPod: d.GPUsPerPod,
		Groups: groups(d, byGroup(d, d.EveryPod())), Confined: d.Confined, OneDomain: d.OneDomain})
	return short == nil
}

// TestMixedFleet is four nodes of 4 GPUs and one of 8: a Run of 24 fits with pods of 4 alone.
func TestMixedFleet(t *testing.T) {
	spec := &rqv1.RunSpec{Resources: rqv1.RunResources{GPUType: "H100", TotalGPUs: 24}}
	narrow := spec.DeepCopy()
	narrow.Malleable = &rqv1.RunMalleable{MinTotalGPUs: 8, MaxTotalGPUs: 24, StepGPUs: 8, DesiredTotalGPUs: ptr(int32(8))}
	for name, c := range map[string]struct {
		spec  *rqv1.RunSpec
		nodes map[int]int
		want  int
	}{
		"together":             {spec, map[int]int{4: 4, 8: 1}, 4},
		"of 8 alone":           {spec, map[int]int{4: 4, 8: 3}, 8},
		"not even then":        {spec, map[int]int{4: 1, 8: 1}, 8},
		"before it wants them": {narrow, map[int]int{4: 4, 8: 1}, 4},
	} {
		spec := c.spec
		d, _ := DemandOf(spec, 0, topology.NewBlocks(c.nodes), nil)
		if d.GPUsPerPod != c.want {
			t.Errorf("%s: pods of %d, want %d", name, d.GPUsPerPod, c.want)
		}
	}
}
