package workloads

import (
	"fmt"
	"os"
	"testing"
	"time"

	perf "k8s.io/kubernetes/test/integration/scheduler_perf"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
)

// namespace of every pod that is measured.
const namespace = "bench-0"

// patience is the longest that one workload may take.
const patience = 20 * time.Minute

func TestMain(m *testing.M) {
	if err := perf.InitTests(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func BenchmarkStock(b *testing.B) {
	s := &stopwatch{}
	perf.RunBenchmarkPerfScheduling(b, "stock.yaml", "stock", nil,
		perf.WithPodsSchedulingTimeout(patience),
		perf.WithPreRunFn(s.reset),
		perf.WithPrepareFn(func(tCtx ktesting.TContext) error {
			reportAtEnd(tCtx, s, checkGangs)
			return s.watch(tCtx)
		}))
}
