package dashboard

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/config"
)

// TestADayOfFrames makes thousands of frames while Runs come and go: what is gone is kept nowhere.
func TestADayOfFrames(t *testing.T) {
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{}
	for _, kind := range kinds {
		in := &store{Store: cache.NewStore(cache.MetaNamespaceKeyFunc), changed: w.touch}
		w.parts = append(w.parts, &part{kind: kind, sources: []*source{{in: in}}})
	}
	f := newFrames(w, args, func() time.Time { return clitest.Noon })
	defer f.look()()
	sent := &frame{}
	turn := func(from, to int) uint64 {
		for n := from; n < to; n++ {
			var runs, leases []any
			for i := range 20 {
				run := clitest.RunOf(fmt.Sprintf("run-%d-%d", n, i), 8, 0, clitest.Runs(8))
				lease := clitest.LeaseOf(&run, run.Name+"-0", 0, "a")
				runs, leases = append(runs, &run), append(leases, &lease)
			}
			for kind, objects := range map[int][]any{0: {nodeOf("a")}, 1: runs, 2: leases} {
				if err := w.parts[kind].sources[0].in.Replace(objects, ""); err != nil {
					t.Fatal(err)
				}
			}
			f.make()
			u := f.latest().since(sent)
			if sent = f.latest(); len(u.Tables[tableRuns].Set) != 20 {
				t.Fatalf("frame %d: %d Runs are sent", n, len(u.Tables[tableRuns].Set))
			}
		}
		runtime.GC()
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		return memory.HeapAlloc
	}
	before := turn(0, 200)
	if after := turn(200, 3000); after > before+2<<20 {
		t.Errorf("%d bytes after 200 frames, %d after 3,000", before, after)
	}
	if got := w.objects(); len(got.Runs) != 20 || len(got.Leases) != 20 {
		t.Errorf("%d Runs and %d GPU leases are there", len(got.Runs), len(got.Leases))
	}
}
