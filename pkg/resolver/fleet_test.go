package resolver

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// fleet is the Feasibility of the real packer: groups with spares, each in a domain of several.
type fleet struct {
	*topology.Fleet
	request topology.Request
}

func (f *fleet) Free(holds []Holding) {
	for _, h := range holds {
		f.Give(h.Node, h.GPUs)
	}
}

func (f *fleet) Hold(holds []Holding) {
	for _, h := range holds {
		f.Take(h.Node, h.GPUs)
	}
}

func (f *fleet) Fits() bool {
	_, fits := f.Place(f.request)
	return fits
}

// fleet makes the state's nodes into a fleet of three domains.
func (s *state) fleet(t *rapid.T) *fleet {
	f := &fleet{topology.NewFleet([]string{"region", "fabric"}, "fabric"), topology.Request{
		Flavor: "H100", GPUsPerPod: rapid.SampledFrom([]int{1, 2, 4}).Draw(t, "each"), Confined: true,
		OneDomain: rapid.Bool().Draw(t, "one domain"),
	}}
	for i, name := range slices.Sorted(maps.Keys(s.size)) {
		labels := map[string]string{"region": "r", "fabric": fmt.Sprint("f", i%3)}
		f.SetNode(topology.Node{Name: name, Labels: labels, Flavor: "H100", GPUs: s.size[name]})
		f.Take(name, s.size[name]-s.free[name])
	}
	for name, flavor := range map[string]string{"plain": "", "broken": "H100"} { // which have no GPUs
		f.SetNode(topology.Node{Name: name, Flavor: flavor, Labels: map[string]string{"region": "r", "fabric": "f0"}})
	}
	for g := range rapid.IntRange(1, 3).Draw(t, "groups") {
		f.request.Groups = append(f.request.Groups, topology.Group{
			Index: g, Pods: rapid.IntRange(1, 3).Draw(t, "pods"), Spares: rapid.IntRange(0, 1).Draw(t, "spares"),
		})
	}
	return f
}

func TestNothingDiesInVainInAFleet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawState(t, 7, 7)
		checkState(t, s.fleet(t), s.candidates)
	})
}
