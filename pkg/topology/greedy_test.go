package topology

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGreedyAlone looks at the first placement, before the search improves on it: in a large fleet it has to be good by
// itself.
func TestGreedyAlone(t *testing.T) {
	type result struct {
		Placed  bool
		Took    []int // by bin, in the order of the domains
		Regions int
		Domains int
		Opened  int
	}
	for _, c := range []struct {
		name    string
		fleet   *Fleet
		keys    []string
		request Request
		want    result
	}{
		{
			"domains in use anyhow before roomier ones",
			sketch("west/a n1=8-4", "west/b n2=16", "west/c n3=16"), nil,
			Request{GPUsPerPod: 4, Groups: []Group{{Index: 0, Pods: 1, Domain: "west/b"}, {Index: 1, Pods: 6}}},
			result{true, []int{0, 4, 3}, 1, 2, 2},
		}, {
			"the region that takes all before a roomier domain elsewhere",
			sketch("east/a n1=8 n2=8", "west/b n3=8 n4=8 n5=8", "west/c n6=8", "east/d n7=8 n8=8 n9=8-4"), nil,
			Request{GPUsPerPod: 4, Groups: groups(1, 9)},
			result{true, []int{4, 5, 0, 0}, 1, 2, 4},
		}, {
			"part-used nodes of every payer before empty ones of any",
			sketch("west/a n1=8 n2=8", "west/a n3=8-4"), []string{"host"},
			Request{GPUsPerPod: 4, Groups: groups(1, 3), Purse: byHost{"n1": 2, "n2": 1, "n3": 1}},
			result{true, []int{2, 0, 1}, 1, 1, 1},
		}, {
			"as much as can be paid for",
			sketch("west/a n1=8", "west/b n2=8"), nil,
			Request{GPUsPerPod: 4, Groups: groups(4, 1), Confined: true, Purse: byLabel{"fabric", map[string]int{"a": 1, "b": 2},
				0}},
			result{false, []int{1, 2}, 1, 2, 2},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.keys != nil {
				relabel(c.fleet, c.keys[0])
			}
			d := newDraft(c.fleet.layOut(&c.request, c.fleet.flavors["H100"]))
			got := result{d.greedy(), d.took, d.cost[0], d.cost[1], d.cost[costOpened]}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if d.undo(0); d.cost != newDraft(d.p).cost {
				t.Errorf("cost %v is left after everything was undone", d.cost)
			}
		})
	}
}

// relabel gives every node its own name as a label that selectors mention.
func relabel(f *Fleet, key string) {
	for _, d := range f.Domains() {
		for _, room := range d.Nodes {
			n := f.nodes[room.Name].Node
			n.Labels = map[string]string{"region": d.Values[0], "fabric": d.Values[1], key: n.Name}
			f.SetNode(n)
		}
	}
	f.SetSelectorKeys([]string{key})
}

// byHost pays for pods on n1, n2 and n3, node by node.
type byHost map[string]int

func (p byHost) Class(labels map[string]string) int { return int(labels["host"][1] - '1') }

func (p byHost) Covers(demand []int) bool {
	for class, n := range demand {
		if n > p["n"+string(rune('1'+class))] {
			return false
		}
	}
	return true
}
