package topology

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestAFleetAndItsCloneChangeApart packs the same on both, changes one and then the other in the same way, and wants
// the one that is left alone to be as it was, and both to be the same in the end.
func TestAFleetAndItsCloneChangeApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, 12)
		f := w.fleet(w.inOrder())
		beside := NewAmounts(map[string]int64{"cpu": 4, Port("TCP", 80): 1})
		f.Burden("stranger", beside, 1)
		for name := range f.nodes {
			f.Burden(name, beside, rapid.IntRange(0, 2).Draw(t, "burden"))
		}
		clone, before := f.Clone(), dump(f)
		want := packed(f, w.request)
		if diff := cmp.Diff([][]string{before, want}, [][]string{dump(clone), packed(clone, w.request)}); diff != "" {
			t.Fatalf("(-fleet +clone)\n%s", diff)
		}
		var steps []func(*Fleet)
		for i := range 8 {
			name := rapid.SampledFrom([]string{"stranger", "n1", "n2"}).Draw(t, "name")
			gpus, n := rapid.IntRange(-4, 4).Draw(t, "gpus"), drawChurnNode(t, name)
			held := NewAmounts(map[string]int64{fmt.Sprintf("thing-%d", i%3): 2})
			steps = append(steps, func(f *Fleet) { f.Hold(name, gpus, held) })
			if i%2 == 0 {
				steps = append(steps, func(f *Fleet) { f.SetNode(n) })
			} else {
				steps = append(steps, func(f *Fleet) { f.RemoveNode(name) })
			}
		}
		for _, step := range steps {
			step(clone)
		}
		if diff := cmp.Diff([][]string{before, want}, [][]string{dump(f), packed(f, w.request)}); diff != "" {
			t.Fatalf("a clone has changed its fleet (-before +after)\n%s", diff)
		}
		for _, step := range steps {
			step(f)
		}
		if diff := cmp.Diff(dump(f), dump(clone)); diff != "" {
			t.Fatalf("(-fleet +clone)\n%s", diff)
		}
	})
}

// packed says where a request goes, and what the nodes lack for more.
func packed(f *Fleet, r Request) []string {
	placement, short := f.Pack(r)
	out := []string{fmt.Sprint(placement, short)}
	for _, name := range []string{"stranger", "n1", "n2"} {
		out = append(out, f.Lacks(name, NewAmounts(map[string]int64{"cpu": 1, Port("TCP", 80): 1}), 1))
	}
	return out
}

// BenchmarkClone copies 5,000 nodes of which something is held: everybody else waits meanwhile.
func BenchmarkClone(b *testing.B) {
	f := bigFleet(40, true)
	held := besideGPUs(4000, 1<<33, 2)
	for name := range f.nodes {
		f.Burden(name, held, 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		f.Clone()
	}
}
