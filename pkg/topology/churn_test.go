package topology

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// dump writes down everything that a fleet knows, in its own order.
func dump(f *Fleet) []string {
	var out []string
	for _, flavor := range slices.Sorted(maps.Keys(f.flavors)) {
		s := f.flavors[flavor]
		out = append(out, fmt.Sprintf("flavor %s: %d free", flavor, s.free))
		for _, b := range s.domains {
			out = append(out, fmt.Sprintf("domain %s: %d free, sizes %v", b.path, b.free, trim(b.sizes)))
			for _, n := range b.nodes {
				out = append(out, fmt.Sprintf("node %s: %d of %d free, schedulable %v", n.order, n.free(), n.GPUs, n.pool != nil))
			}
			for _, p := range b.pools {
				out = append(out, fmt.Sprintf("pool %v: %d free, %d nodes", p.set.labels, p.free, p.nodes))
				out = append(out, dumpFreeList("used", p.used)...)
				out = append(out, dumpFreeList("empty", p.empty)...)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(f.sets)) {
		out = append(out, fmt.Sprintf("set %v of %d pools", f.sets[key].labels, f.sets[key].pools))
	}
	for _, name := range slices.Sorted(maps.Keys(f.nodes)) {
		n := f.nodes[name]
		out = append(out, fmt.Sprintf("name %s: known %v, held %d, %q", name, n.known, n.held, n.reason))
	}
	return out
}

func dumpFreeList(name string, s freeList) []string {
	var out []string
	for free, nodes := range s {
		for _, n := range nodes {
			out = append(out, fmt.Sprintf("%s freeList %d: %s", name, free, n.Name))
		}
	}
	return out
}

func trim(sizes []int) []int {
	for len(sizes) > 0 && sizes[len(sizes)-1] == 0 {
		sizes = sizes[:len(sizes)-1]
	}
	return sizes
}

func drawChurnNode(t *rapid.T, name string) Node {
	n := Node{Name: name, Labels: map[string]string{}, GPUs: rapid.IntRange(0, 8).Draw(t, "gpus")}
	n.Flavor = rapid.SampledFrom([]string{"H100", "H100", "A100", ""}).Draw(t, "flavor")
	n.Unschedulable = rapid.IntRange(0, 3).Draw(t, "cordon") == 0
	for _, values := range [][]string{{"fabric", "a", "b", ""}, {"region", "east", "west"}, {"team", "x", "y", ""}} {
		if v := rapid.SampledFrom(values[1:]).Draw(t, values[0]); v != "" {
			n.Labels[values[0]] = v
		}
	}
	return n
}

// TestChurnEqualsRebuild does things to a fleet in random order, and compares it with one that is built afresh from
// the nodes and the sums of what they hold.
func TestChurnEqualsRebuild(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := NewFleet(testLevels, "fabric")
		nodes, held, keys := map[string]Node{}, map[string]int{}, []string(nil)
		name := rapid.SampledFrom([]string{"n1", "n2", "n3", "n4", "n5"})
		gpus := rapid.IntRange(0, 4)
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				n := drawChurnNode(t, name.Draw(t, "name"))
				nodes[n.Name] = n
				f.SetNode(n)
			},
			"remove": func(t *rapid.T) { n := name.Draw(t, "name"); delete(nodes, n); f.RemoveNode(n) },
			"take": func(t *rapid.T) {
				n, g := name.Draw(t, "name"), gpus.Draw(t, "gpus")
				held[n] += g
				f.Take(n, g)
			},
			"give": func(t *rapid.T) {
				n, g := name.Draw(t, "name"), gpus.Draw(t, "gpus")
				held[n] -= g
				f.Give(n, g)
			},
			"keys": func(t *rapid.T) {
				keys = rapid.SliceOfDistinct(rapid.SampledFrom([]string{"team", "region"}), rapid.ID).Draw(t, "keys")
				f.SetSelectorKeys(keys)
			},
			"": func(t *rapid.T) {
				fresh := NewFleet(testLevels, "fabric")
				fresh.SetSelectorKeys(keys)
				for _, n := range slices.Sorted(maps.Keys(nodes)) {
					fresh.SetNode(nodes[n])
				}
				for n, g := range held {
					fresh.Take(n, g)
				}
				if diff := cmp.Diff(dump(fresh), dump(f)); diff != "" {
					t.Fatalf("(-rebuilt +churned)\n%s", diff)
				}
			},
		})
	})
}

// TestOrderOfInputDoesNotMatter gives the same nodes in different order and wants the same bytes (R30).
func TestOrderOfInputDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, 12)
		var first []byte
		for i := range 4 {
			order := w.inOrder()
			if i > 0 {
				order = rapid.Permutation(order).Draw(t, "order")
			}
			placement, shortfall := w.fleet(order).Pack(w.request)
			got, err := json.Marshal([]any{placement, shortfall})
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = got
			}
			if diff := cmp.Diff(string(first), string(got)); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

// TestPackChangesNothing packs twice and wants the same answer from the same fleet.
func TestPackChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, 12)
		f := w.fleet(w.inOrder())
		before := dump(f)
		p1, s1 := f.Pack(w.request)
		p2, s2 := f.Pack(w.request)
		if diff := cmp.Diff([]any{p1, s1}, []any{p2, s2}); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(before, dump(f)); diff != "" {
			t.Fatal(diff)
		}
	})
}
