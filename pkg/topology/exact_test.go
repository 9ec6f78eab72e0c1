package topology

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestPackIsExact compares the packer with brute force: the same requests fit, and the objective comes out the same.
// Some mistakes show in one world of thousands.
func TestPackIsExact(t *testing.T) {
	for range 50 {
		rapid.Check(t, checkExact)
	}
}

// FuzzPackIsExact lets the native fuzzer choose the worlds.
func FuzzPackIsExact(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkExact)) }

func checkExact(t *rapid.T) {
	w := drawWorld(t, 7)
	placement, shortfall := w.fleet(w.inOrder()).Pack(w.request)
	ref := w.reference()
	want := ref.solve()
	if fits := shortfall == nil; fits != (want != nil) {
		t.Fatalf("fits: %v (%v); by brute force: %v\n%+v", fits, shortfall, want, w)
	}
	if shortfall != nil {
		checkShortfall(t, w, shortfall)
		return
	}
	w.checkPlacement(t, placement)
	// Spares may open nodes that the objective would leave alone.
	cost, levels := w.cost(placement), len(want)
	if w.request.spares() > 0 {
		levels--
	}
	if diff := cmp.Diff(want[:levels], cost[:levels]); diff != "" {
		t.Fatalf("objective (-brute force +packer):\n%s\n%+v\n%+v", diff, placement, w)
	}
	if w.purse != nil {
		for labels, n := range w.purse.asked {
			if n > 1 {
				t.Errorf("the class of %q was asked for %d times", labels, n)
			}
		}
	}
}

func (w *world) node(name string) Node {
	return w.nodes[slices.IndexFunc(w.nodes, func(n Node) bool { return n.Name == name })]
}

// checkPlacement checks every hard rule on the slots alone.
func (w *world) checkPlacement(t rapid.TB, p Placement) {
	pods, demand, index := map[string]int{}, make([]int, 3), 0
	domainOf := map[int]string{}
	for _, g := range w.request.Groups {
		for k := range g.size() {
			s := p.Slots[index]
			index++
			n := w.node(s.Node)
			key := strings.Join(w.path(n), "/")
			if s.Group != g.Index || s.Spare != (k >= g.Pods) || s.Domain != key || n.Flavor != w.request.Flavor {
				t.Fatalf("slot %+v, for group %d, node %+v", s, g.Index, n)
			}
			if n.Unschedulable || w.excluded[n.Name] || !w.legal(n) {
				t.Fatalf("slot %+v on a node that may not be used: %+v", s, n)
			}
			if g.Domain != "" && key != g.Domain {
				t.Fatalf("slot %+v outside the domain of its group, %s", s, g.Domain)
			}
			if first, ok := domainOf[g.Index]; w.request.Confined && ok && first != key {
				t.Fatalf("group %d lies in %s and in %s", g.Index, first, key)
			}
			domainOf[g.Index] = key
			pods[n.Name]++
			if s.Class < 0 || w.purse != nil && w.purse.classes[n.Labels["team"]] != s.Class {
				t.Fatalf("slot %+v has the wrong class for %v", s, n.Labels)
			}
			demand[s.Class]++
		}
	}
	if index != len(p.Slots) {
		t.Fatalf("%d slots for %d pods", len(p.Slots), index)
	}
	for name, n := range pods {
		if room := w.room(w.node(name)); n > room {
			t.Fatalf("%d pods on %s, which has room for %d", n, name, room)
		}
	}
	if w.request.Purse != nil && !w.request.Purse.Covers(demand) {
		t.Fatalf("nobody pays for %v", demand)
	}
}

// cost is the objective's tuple of a placement.
func (w *world) cost(p Placement) refCost {
	keys, nodes := map[string]bool{}, map[string]bool{}
	for _, s := range p.Slots {
		keys[s.Domain], nodes[s.Node] = true, true
	}
	var touched []string
	free, opened := 0, 0
	for _, n := range w.nodes {
		key := strings.Join(w.path(n), "/")
		if !w.legal(n) || n.Flavor != w.request.Flavor || !keys[key] {
			continue
		}
		touched = append(touched, key)
		if !n.Unschedulable {
			free += max(0, n.GPUs-w.held[n.Name])
		}
		if nodes[n.Name] && w.held[n.Name] == 0 {
			opened++
		}
	}
	levels := slices.Index(w.levels, w.fabric) + 1
	if len(p.Slots) == 0 {
		return append(make(refCost, levels), 0, 0)
	}
	return append(unitCounts(touched, levels), free, opened)
}

func checkShortfall(t rapid.TB, w *world, s *Shortfall) {
	wanted := 0
	for _, g := range w.request.Groups {
		wanted += g.size() * w.request.GPUsPerPod
	}
	if s.WantedGPUs != wanted || s.ShortGPUs <= 0 || s.PlaceableGPUs < 0 || s.String() == "" {
		t.Fatalf("shortfall %+v of a request for %d GPUs", s, wanted)
	}
	switch s.Kind {
	case PodTooLarge, GroupTooLarge:
		if s.ShortGPUs != s.UnitGPUs-s.LargestGPUs {
			t.Fatalf("shortfall %+v does not add up", s)
		}
	default:
		if s.ShortGPUs != s.WantedGPUs-s.PlaceableGPUs {
			t.Fatalf("shortfall %+v does not add up", s)
		}
	}
}
