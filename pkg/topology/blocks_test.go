package topology

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// fleetWith is a fleet whose domains have nodes of 8 GPUs, of which so many are free on each.
func fleetWith(free ...[]int) *Fleet {
	f := NewFleet([]string{"d"}, "d")
	for d, nodes := range free {
		for n, gpus := range nodes {
			name := fmt.Sprintf("d%d-n%02d", d, n)
			f.SetNode(Node{Name: name, Flavor: "H100", GPUs: 8, Labels: map[string]string{"d": fmt.Sprintf("d%d", d)}})
			f.Take(name, 8-gpus)
		}
	}
	return f
}

func TestBlocksFitOnlyWhereTheyLieTogether(t *testing.T) {
	f := fleetWith([]int{4, 4, 1}, []int{8, 3})
	for _, c := range []struct {
		block Block
		most  int // how many of them fit at once
	}{
		{Block{1, 8}, 1}, {Block{1, 4}, 4}, {Block{1, 1}, 20}, {Block{2, 4}, 2}, {Block{3, 4}, 0}, {Block{2, 8}, 0},
		{Block{9, 1}, 2}, {Block{12, 1}, 0}, {Block{1, 9}, 0},
	} {
		b, got := f.Blocks("H100"), 0
		for b.Fit(c.block, got+1) {
			got++
		}
		if got != c.most {
			t.Errorf("%d of %+v fit, want %d", got, c.block, c.most)
		}
	}
}

func TestWhatIsTakenOfBlocksIsGone(t *testing.T) {
	f := fleetWith([]int{4, 4, 1}, []int{8, 3})
	b := f.Blocks("H100")
	b.Take(Block{2, 4}, 1)
	if !b.Fit(Block{1, 8}, 1) || b.Free() != 12 {
		t.Errorf("%d GPUs are free; the block was to go where it fits best", b.Free())
	}
	b.Take(Block{1, 3}, 5)
	if diff := cmp.Diff([][]int{{0, 1, 0, 0, 0}, {2: 1, 8: 0}}, zeroed(b.domains)); diff != "" || b.Free() != 3 {
		t.Errorf("%d GPUs are free (-want +got):\n%s", b.Free(), diff)
	}
	if f.FreeOf("H100") != 20 || f.Blocks("none").Fit(Block{1, 1}, 1) {
		t.Error("the fleet is not what it was")
	}
}

// zeroed leaves out nodes that have nothing free.
func zeroed(domains [][]int) [][]int {
	for _, nodes := range domains {
		nodes[0] = 0
	}
	return domains
}

// What a plan places, blocks hold: nobody waits for room who would fit.
func TestBlocksHoldWhatIsPacked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		free := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(0, 8), 1, 4), 1, 4).Draw(t, "free")
		f := fleetWith(free...)
		block := Block{rapid.IntRange(1, 4).Draw(t, "pods"), rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(t, "GPUs")}
		n := rapid.IntRange(1, 4).Draw(t, "groups")
		r := Request{Flavor: "H100", GPUsPerPod: block.GPUsPerPod, Confined: true}
		for i := range n {
			r.Groups = append(r.Groups, Group{Index: i, Pods: block.Pods})
		}
		_, short := f.Pack(r)
		if fit := f.Blocks("H100").Fit(block, n); fit != (short == nil) {
			t.Fatalf("blocks fit: %v, and a plan is short by %+v", fit, short)
		}
		b := f.Blocks("H100")
		b.Take(block, n)
		if taken := f.FreeOf("H100") - b.Free(); short == nil && taken != n*block.Pods*block.GPUsPerPod {
			t.Fatalf("%d GPUs were taken", taken)
		}
	})
}

// TestBlocksForWhoMayNotUseAll: what pods may not use, and what has too little beside GPUs, is no room for them.
func TestBlocksForWhoMayNotUseAll(t *testing.T) {
	f := NewFleet([]string{"fabric.domain"}, "fabric.domain")
	for i, name := range []string{"n0", "n1", "n2"} {
		f.SetNode(Node{Name: name, Labels: map[string]string{"fabric.domain": "d0"}, Flavor: "H100", GPUs: 8,
			Beside: NewAmounts(map[string]int64{"cpu": int64(4 + 4*i)})})
	}
	f.Take("n1", 5)
	on := func(names ...string) map[string]bool {
		usable := map[string]bool{}
		for _, name := range names {
			usable[name] = true
		}
		return usable
	}
	cpus := NewAmounts(map[string]int64{"cpu": 2})
	for what, c := range map[string]struct {
		usable map[string]bool
		beside *Amounts
		gpus   int
		want   int
	}{
		"all":                      {nil, nil, 1, 19},
		"but for one":              {on("n1", "n2"), nil, 1, 11},
		"on one":                   {on("n1"), nil, 1, 3},
		"on one that is too full":  {on("n1"), nil, 4, 0},
		"on none that there is":    {on("other"), nil, 1, 0},
		"in pods, pieces are left": {nil, nil, 2, 18},
		"of large pods":            {on("n0", "n1"), nil, 8, 8},
		"with too few CPUs":        {nil, cpus, 1, 11},
		"both":                     {on("n0", "n1"), cpus, 1, 5},
	} {
		if got := f.BlocksFor("H100", c.usable, c.beside, c.gpus).Free(); got != c.want {
			t.Errorf("%s: %d GPUs, not %d", what, got, c.want)
		}
	}
	if f.BlocksFor("none", nil, nil, 1).Free() != 0 {
		t.Error("there is room where there are no nodes")
	}
}
