package topology

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sketch builds a fleet from lines such as "west/a n1=8 n2=8-3 n3=8!": a fabric domain, and nodes with their GPUs, what
// is held of them, and a ! for a cordon.
func sketch(lines ...string) *Fleet {
	f := NewFleet(testLevels, "fabric")
	f.SetSelectorKeys([]string{"region", "fabric"})
	for _, line := range lines {
		fields := strings.Fields(line)
		region, fabric, _ := strings.Cut(fields[0], "/")
		for _, field := range fields[1:] {
			name, size, _ := strings.Cut(field, "=")
			size, cordoned := strings.CutSuffix(size, "!")
			var gpus, held int
			if n, _ := fmt.Sscanf(size, "%d-%d", &gpus, &held); n == 0 {
				panic("cannot read " + field)
			}
			n := host(name, region, fabric, gpus)
			n.Unschedulable = cordoned
			f.SetNode(n)
			f.Take(name, held)
		}
	}
	return f
}

// show writes a placement as "group: domain node node …", one string a group, role and domain.
func show(p Placement) []string {
	var out []string
	at := ""
	for _, s := range p.Slots {
		role := ""
		if s.Spare {
			role = " spare"
		}
		if here := fmt.Sprintf("%d%s: %s", s.Group, role, s.Domain); here != at {
			at = here
			out = append(out, here)
		}
		out[len(out)-1] += " " + s.Node
	}
	return out
}

// byLabel pays for pods by the value of one label, and for none where the value is not listed.
type byLabel struct {
	key  string
	pods map[string]int
	all  int // and for so many in total; 0 for no limit
}

func (p byLabel) Class(labels map[string]string) int {
	class := 0
	for _, value := range []string{"a", "b", "c", "west", "east"} {
		if _, ok := p.pods[value]; ok {
			if labels[p.key] == value {
				return class
			}
			class++
		}
	}
	return -1
}

func (p byLabel) Covers(demand []int) bool {
	class, total := 0, 0
	for _, value := range []string{"a", "b", "c", "west", "east"} {
		limit, ok := p.pods[value]
		if !ok {
			continue
		}
		if class < len(demand) {
			total += demand[class]
			if demand[class] > limit {
				return false
			}
		}
		class++
	}
	return p.all == 0 || total <= p.all
}

func TestPack(t *testing.T) {
	confined := func(gpus int, groups ...Group) Request {
		return Request{GPUsPerPod: gpus, Groups: groups, Confined: true}
	}
	anywhere := func(gpus, pods int) Request {
		return Request{GPUsPerPod: gpus, Groups: []Group{{Pods: pods}}}
	}
	for _, c := range []struct {
		name    string
		fleet   *Fleet
		request Request
		want    []string
	}{
		{
			"nothing to place", sketch("west/a n1=8"), anywhere(8, 0), nil,
		}, {
			"the fullest domain that fits",
			sketch("west/a n1=8 n2=8", "west/b n3=8 n4=8-4", "west/c n5=8-8 n6=8-6"), anywhere(4, 2),
			[]string{"0: west/b n4 n3"},
		}, {
			"one domain rather than two fuller ones",
			sketch("west/a n1=8 n2=8", "west/b n3=8-4", "west/c n4=8-4"), anywhere(4, 2),
			[]string{"0: west/a n1 n1"},
		}, {
			"two domains of one region rather than of two",
			sketch("east/a n1=8", "east/b n2=8-4 n3=8-7", "west/c n4=8", "west/d n5=8"), anywhere(8, 2),
			[]string{"0: west/c n4", "0: west/d n5"},
		}, {
			"more domains in one region rather than fewer in two",
			sketch("east/a n1=8 n2=8", "west/b n3=8 n4=8-4", "west/c n5=8", "west/d n6=8 n7=8-8"), anywhere(8, 3),
			[]string{"0: west/b n3", "0: west/c n5", "0: west/d n6"},
		}, {
			"part-used nodes before empty ones, fullest first",
			sketch("west/a n1=8 n2=8-2 n3=8-6 n4=8-4"), anywhere(2, 8),
			[]string{"0: west/a n3 n4 n4 n2 n2 n2 n1 n1"},
		}, {
			"the smallest empty node that holds the rest",
			sketch("west/a n1=16 n2=4 n3=8"), anywhere(2, 3),
			[]string{"0: west/a n3 n3 n3"},
		}, {
			"large empty nodes when that opens fewer",
			sketch("west/a n1=4 n2=4 n3=8 n4=8"), anywhere(4, 3),
			[]string{"0: west/a n3 n3 n1"},
		}, {
			"pods are whole",
			sketch("west/a n1=8-3 n2=8-3 n3=8"), anywhere(4, 4),
			[]string{"0: west/a n1 n2 n3 n3"},
		}, {
			"cordoned nodes take nothing",
			sketch("west/a n1=8! n2=8"), anywhere(4, 2),
			[]string{"0: west/a n2 n2"},
		}, {
			"a group does not leave its domain",
			sketch("west/a n1=8 n2=8-4", "west/b n3=8-4 n4=8"), confined(4, Group{Index: 0, Pods: 3}, Group{Index: 1, Pods: 3}),
			[]string{"0: west/a n2 n1 n1", "1: west/b n3 n4 n4"},
		}, {
			"groups of different sizes find the one way to fit",
			sketch("west/a n1=8 n2=8", "west/b n3=8 n4=4"), confined(4, Group{Index: 4, Pods: 1}, Group{Index: 5, Pods: 2},
				Group{Index: 6, Pods: 2}, Group{Index: 7, Pods: 2}),
			[]string{"4: west/b n3", "5: west/a n1 n1", "6: west/a n2 n2", "7: west/b n3 n4"},
		}, {
			"a bound group follows its pods, and the others join it",
			sketch("west/a n1=8-4 n2=8-4", "west/b n3=8 n4=8"),
			confined(4, Group{Index: 0, Pods: 2}, Group{Index: 1, Pods: 1, Domain: "west/b"}),
			[]string{"0: west/b n3 n4", "1: west/b n3"},
		}, {
			"pods that may go anywhere stay where their group is bound",
			sketch("west/a n1=8-4", "west/b n2=8"),
			Request{GPUsPerPod: 4, Groups: []Group{{Index: 0, Pods: 1}, {Index: 1, Pods: 1, Domain: "west/b"}}},
			[]string{"0: west/b n2", "1: west/b n2"},
		}, {
			"all groups in one domain",
			sketch("west/a n1=8-4", "west/b n2=8 n3=8"),
			Request{GPUsPerPod: 4, Groups: []Group{{Index: 0, Pods: 1}, {Index: 1, Pods: 1}}, Confined: true, OneDomain: true},
			[]string{"0: west/b n2", "1: west/b n2"},
		}, {
			"all groups in the domain where some already are",
			sketch("west/a n1=8-4 n2=8-4", "west/b n3=8"),
			Request{GPUsPerPod: 4, Groups: []Group{{Index: 2, Pods: 1}, {Index: 0, Pods: 0, Domain: "west/b"},
				{Index: 1, Pods: 1}}, Confined: true, OneDomain: true},
			[]string{"2: west/b n3", "1: west/b n3"},
		}, {
			"excluded nodes are passed over",
			sketch("west/a n1=8-4 n2=8"),
			Request{GPUsPerPod: 4, Groups: groups(1, 1), Excluded: func(node string) bool { return node == "n1" }},
			[]string{"0: west/a n2"},
		}, {
			"domains that nobody can pay for are no candidates",
			sketch("west/a n1=8-4", "west/b n2=8"),
			Request{GPUsPerPod: 4, Groups: groups(1, 1), Purse: byLabel{"fabric", map[string]int{"b": 8}, 0}},
			[]string{"0: west/b n2"},
		}, {
			"what one payer cannot pay for whole goes where another can",
			sketch("west/a n1=8 n2=8-4", "west/b n3=8 n4=8"),
			Request{GPUsPerPod: 4, Groups: groups(1, 3), Purse: byLabel{"fabric", map[string]int{"a": 2, "b": 3}, 0}},
			[]string{"0: west/b n3 n3 n4"},
		}, {
			"payers of two domains together",
			sketch("west/a n1=8 n2=8", "west/b n3=8 n4=8"),
			Request{GPUsPerPod: 4, Groups: groups(2, 2), Confined: true, Purse: byLabel{"fabric", map[string]int{"a": 3, "b": 2},
				0}},
			[]string{"0: west/a n1 n1", "1: west/b n3 n3"},
		}, {
			"the largest group is not always first",
			sketch("west/a n1=4 n2=4 n3=4 n4=4", "west/b n5=4 n6=4 n7=4"),
			confined(4, Group{Index: 0, Pods: 3}, Group{Index: 1, Pods: 2}, Group{Index: 2, Pods: 2}),
			[]string{"0: west/b n5 n6 n7", "1: west/a n1 n2", "2: west/a n3 n4"},
		}, {
			"nor when money is short to the pod",
			sketch("west/a n1=4 n2=4 n3=4 n4=4 n5=4", "west/b n6=4 n7=4 n8=4 n9=4"),
			Request{
				GPUsPerPod: 4, Groups: []Group{{Index: 0, Pods: 3}, {Index: 1, Pods: 2}, {Index: 2, Pods: 2}}, Confined: true,
				Purse: byLabel{"fabric", map[string]int{"a": 4, "b": 3}, 0},
			},
			[]string{"0: west/b n6 n7 n8", "1: west/a n1 n2", "2: west/a n3 n4"},
		}, {
			"equal choices by name",
			sketch("west/b n1=8 n2=8", "west/a n9=8 n8=8"), anywhere(8, 1),
			[]string{"0: west/a n8"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.request.Flavor = "H100"
			got, shortfall := c.fleet.Pack(c.request)
			if shortfall != nil {
				t.Fatal(shortfall)
			}
			if diff := cmp.Diff(c.want, show(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSlotsCarryThePayersClass has two classes of node in one domain.
func TestSlotsCarryThePayersClass(t *testing.T) {
	f := sketch("west/a n1=8", "east/a n2=8-4")
	got, shortfall := f.Pack(Request{
		Flavor: "H100", GPUsPerPod: 4, Groups: groups(1, 3),
		Purse: byLabel{"region", map[string]int{"west": 2, "east": 1}, 0},
	})
	want := []Slot{{Node: "n2", Class: 1, Domain: "east/a"}, {Node: "n1", Class: 0, Domain: "west/a"},
		{Node: "n1", Class: 0, Domain: "west/a"}}
	if diff := cmp.Diff(want, got.Slots); diff != "" || shortfall != nil {
		t.Error(shortfall, diff)
	}
}

// TestRacksKeepRanksTogether has a level below the fabric level: it orders the nodes of a domain.
func TestRacksKeepRanksTogether(t *testing.T) {
	f := NewFleet([]string{"fabric", "rack"}, "fabric")
	for i, rack := range []string{"r2", "r1", "r2", "r1"} {
		f.SetNode(Node{Name: fmt.Sprint("n", i), Flavor: "H100", GPUs: 8,
			Labels: map[string]string{"fabric": "a", "rack": rack}})
	}
	got, shortfall := f.Pack(Request{Flavor: "H100", GPUsPerPod: 8, Groups: groups(1, 4)})
	if diff := cmp.Diff([]string{"0: a n1 n3 n0 n2"}, show(got)); diff != "" || shortfall != nil {
		t.Error(shortfall, diff)
	}
}

// TestTiesBreakByNameAcrossLabelSets has nodes that payers' selectors tell apart, though nobody's choice depends on it.
func TestTiesBreakByNameAcrossLabelSets(t *testing.T) {
	f := NewFleet(testLevels, "fabric")
	f.SetSelectorKeys([]string{"team"})
	for i, team := range []string{"z", "a", "m", "a"} {
		n := host(fmt.Sprint("n", i), "west", "a", 8)
		n.Labels["team"] = team
		f.SetNode(n)
	}
	got, shortfall := f.Pack(Request{Flavor: "H100", GPUsPerPod: 8, Groups: groups(1, 4)})
	if diff := cmp.Diff([]string{"0: west/a n0 n1 n2 n3"}, show(got)); diff != "" || shortfall != nil {
		t.Error(shortfall, diff)
	}
}
