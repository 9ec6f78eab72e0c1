package workloads

import (
	"fmt"
	"os"
	"testing"
	"time"

	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	perf "k8s.io/kubernetes/test/integration/scheduler_perf"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"

	"github.com/davidlangworthy/jobtree/pkg/plugins"
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

func BenchmarkJobtree(b *testing.B) {
	s := &stopwatch{}
	leading := make(chan struct{})
	close(leading)
	registry := frameworkruntime.Registry{plugins.Name: plugins.NewFactory(leading, func() bool { return true })}
	perf.RunBenchmarkPerfScheduling(b, "jobtree.yaml", "jobtree", registry,
		perf.WithPreRunFn(s.reset),
		perf.WithPrepareFn(func(tCtx ktesting.TContext) error {
			reportAtEnd(tCtx, s, checkGangs, checkLeases)
			if err := installCRDs(tCtx); err != nil {
				return err
			}
			return s.watch(tCtx)
		}),
		perf.WithNodeUpdateFn(submit(s)))
}
