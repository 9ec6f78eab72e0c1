package topology

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

var testLevels = []string{"region", "fabric"}

// host is a schedulable H100 node in region/fabric.
func host(name, region, fabric string, gpus int) Node {
	return Node{Name: name, Flavor: "H100", GPUs: gpus, Labels: map[string]string{"region": region, "fabric": fabric}}
}

func fleetOf(nodes ...Node) *Fleet {
	f := NewFleet(testLevels, "fabric")
	for _, n := range nodes {
		f.SetNode(n)
	}
	return f
}

func TestNodesThatAreLeftOut(t *testing.T) {
	labels := func(region, fabric string) map[string]string {
		return map[string]string{"region": region, "fabric": fabric}
	}
	for _, c := range []struct {
		name string
		node Node
		want []LeftOut
	}{
		{"complete", Node{Labels: labels("west", "a"), Flavor: "H100", GPUs: 8}, nil},
		{"cordoned", Node{Labels: labels("west", "a"), Flavor: "H100", GPUs: 8, Unschedulable: true}, nil},
		{"no labels", Node{Flavor: "H100", GPUs: 8}, []LeftOut{{"n", `label "region" is missing`}}},
		{"no fabric", Node{Labels: map[string]string{"region": "west"}, Flavor: "H100", GPUs: 8},
			[]LeftOut{{"n", `label "fabric" is missing`}}},
		{"empty fabric", Node{Labels: labels("west", ""), Flavor: "H100", GPUs: 8},
			[]LeftOut{{"n", `label "fabric" is empty`}}},
		{"no flavor", Node{Labels: labels("west", "a"), GPUs: 8}, []LeftOut{{"n", "the label of its GPU type is missing"}}},
		{"flavor without GPUs", Node{Labels: labels("west", "a"), Flavor: "H100"},
			[]LeftOut{{"n", `its GPU type is "H100", but no GPU is allocatable`}}},
		{"absurd", Node{Labels: labels("west", "a"), Flavor: "H100", GPUs: 1025},
			[]LeftOut{{"n", "1025 allocatable GPUs are more than the limit of 1024"}}},
		{"no GPU node at all", Node{Labels: labels("west", "a")}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			other := host("other", "west", "a", 4)
			c.node.Name = "n"
			f := fleetOf(c.node, other)
			if diff := cmp.Diff(c.want, f.LeftOut()); diff != "" {
				t.Error(diff)
			}
			if _, _, ok := f.Domain("n"); ok != (c.want == nil && c.node.GPUs > 0) {
				t.Errorf("Domain knows the node: %v", ok)
			}
			if got := f.Free("other"); got != 4 {
				t.Errorf("Free(other) = %d", got)
			}
			f.SetNode(host("n", "west", "b", 8))
			if got := f.LeftOut(); got != nil {
				t.Errorf("after the node was mended: %v", got)
			}
		})
	}
}

func TestLeftOutNodesAreSorted(t *testing.T) {
	f := fleetOf(Node{Name: "z", GPUs: 1}, Node{Name: "a", GPUs: 1}, Node{Name: "m", GPUs: 1})
	want := []LeftOut{{"a", "the label of its GPU type is missing"}, {"m", "the label of its GPU type is " +
		"missing"}, {"z", "the label of its GPU type is missing"}}
	if diff := cmp.Diff(want, f.LeftOut()); diff != "" {
		t.Error(diff)
	}
}

func TestHeldGPUs(t *testing.T) {
	type counts struct{ Held, Free, FreeOf int }
	f := NewFleet(testLevels, "fabric")
	for _, step := range []struct {
		name string
		do   func()
		want counts
	}{
		{"a pod is seen before its node", func() { f.Take("n", 3) }, counts{3, 0, 0}},
		{"the node appears", func() { f.SetNode(host("n", "west", "a", 8)) }, counts{3, 5, 5}},
		{"another pod", func() { f.Take("n", 5) }, counts{8, 0, 0}},
		{"a device breaks", func() { f.SetNode(host("n", "west", "a", 7)) }, counts{8, 0, 0}},
		{"one pod is gone", func() { f.Give("n", 3) }, counts{5, 2, 2}},
		{"a cordon", func() { n := host("n", "west", "a", 7); n.Unschedulable = true; f.SetNode(n) }, counts{5, 2, 0}},
		{"a pod ends under the cordon", func() { f.Give("n", 5) }, counts{0, 7, 0}},
		{"the cordon is lifted", func() { f.SetNode(host("n", "west", "a", 7)) }, counts{0, 7, 7}},
		{"a pod", func() { f.Take("n", 2) }, counts{2, 5, 5}},
		{"the node is deleted", func() { f.RemoveNode("n") }, counts{2, 0, 0}},
		{"it comes back with another flavor", func() { n := host("n", "west", "a", 7); n.Flavor = "A100"; f.SetNode(n) },
			counts{2, 5, 0}},
		{"it loses a label", func() { f.SetNode(host("n", "west", "", 7)) }, counts{2, 0, 0}},
		{"gone again", func() { f.RemoveNode("n") }, counts{2, 0, 0}},
		{"and its pod too", func() { f.Give("n", 2) }, counts{0, 0, 0}},
		{"a release is seen before its start", func() { f.Give("n", 2) }, counts{-2, 0, 0}},
		{"the node meanwhile", func() { f.SetNode(host("n", "west", "a", 8)) }, counts{-2, 8, 8}},
		{"the start", func() { f.Take("n", 2) }, counts{0, 8, 8}},
	} {
		step.do()
		if diff := cmp.Diff(step.want, counts{f.Held("n"), f.Free("n"), f.FreeOf("H100")}); diff != "" {
			t.Fatalf("%s: %s", step.name, diff)
		}
	}
	f.RemoveNode("n")
	f.RemoveNode("n")
	if len(f.nodes)+len(f.flavors)+len(f.sets) != 0 {
		t.Errorf("an empty fleet remembers %d names, %d flavors, %d label sets", len(f.nodes), len(f.flavors), len(f.sets))
	}
}

func TestDomains(t *testing.T) {
	f := NewFleet([]string{"region", "fabric", "rack"}, "fabric")
	add := func(name, fabric, rack, flavor string) {
		n := host(name, "west", fabric, 8)
		n.Labels["rack"], n.Flavor = rack, flavor
		f.SetNode(n)
	}
	add("n1", "b", "r2", "H100")
	add("n2", "b", "r1", "H100")
	add("n3", "b", "r1", "A100")
	add("n4", "a", "r9", "H100")
	f.Take("n1", 3)
	cordoned := host("n4", "west", "a", 8)
	cordoned.Labels["rack"], cordoned.Unschedulable = "r9", true
	f.SetNode(cordoned)
	want := []Domain{
		{Key: "west/a", Values: []string{"west", "a"}, Flavor: "H100",
			Nodes: []NodeRoom{{Name: "n4", GPUs: 8, Free: 8, Unschedulable: true}}},
		{Key: "west/b", Values: []string{"west", "b"}, Flavor: "A100", Nodes: []NodeRoom{{Name: "n3", GPUs: 8, Free: 8}}},
		{Key: "west/b", Values: []string{"west", "b"}, Flavor: "H100",
			Nodes: []NodeRoom{{Name: "n2", GPUs: 8, Free: 8}, {Name: "n1", GPUs: 8, Free: 5}}},
	}
	if diff := cmp.Diff(want, f.Domains()); diff != "" {
		t.Error(diff)
	}
	key, labels, ok := f.Domain("n1")
	if diff := cmp.Diff(map[string]string{"region": "west", "fabric": "b"}, labels); diff != "" || key != "west/b" || !ok {
		t.Errorf("Domain(n1) = %q, %v, %v", key, labels, ok)
	}
	if diff := cmp.Diff([]string{"A100", "H100"}, f.Flavors()); diff != "" {
		t.Error(diff)
	}
}

func TestNewFleetRefusesBadLevels(t *testing.T) {
	for name, levels := range map[string][]string{
		"fabric level absent": {"region"},
		"no levels":           nil,
		"too many":            {"1", "2", "3", "4", "5", "6", "7", "8", "fabric"},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			NewFleet(levels, "fabric")
		})
	}
}
