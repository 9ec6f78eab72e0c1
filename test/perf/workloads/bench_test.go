package workloads

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	perf "k8s.io/kubernetes/test/integration/scheduler_perf"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"k8s.io/utils/clock"

	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/controllers"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
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

func BenchmarkJobtree(b *testing.B) { benchmark(b, createRun) }

// benchmark runs the workloads on gangs that are made in one way.
func benchmark(b *testing.B, create creation) {
	s := &stopwatch{}
	registry := frameworkruntime.Registry{plugins.Name: newJobtree}
	perf.RunBenchmarkPerfScheduling(b, "jobtree.yaml", "jobtree", registry,
		perf.WithPreRunFn(s.reset),
		perf.WithPrepareFn(func(tCtx ktesting.TContext) error {
			reportAtEnd(tCtx, s, checkGangs, checkLeases)
			if err := installCRDs(tCtx); err != nil {
				return err
			}
			return s.watch(tCtx)
		}),
		perf.WithNodeUpdateFn(submit(s, create)))
}

// newJobtree makes what cmd/scheduler makes before its scheduler, with what the library's scheduler has made. There is
// one profile, so that there is one of everything.
func newJobtree(ctx context.Context, raw runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	metrics.Register()
	args, err := plugins.ParseArgs(raw)
	if err != nil {
		return nil, err
	}
	client, err := controllers.NewClient(handle.KubeConfig())
	if err != nil {
		return nil, err
	}
	known, clock := book.New(args), clock.RealClock{}
	c, err := controllers.New(controllers.Options{
		Args: args, Book: known, Kube: handle.ClientSet(), EventsClient: handle.ClientSet(), Client: client,
		Shared: handle.SharedInformerFactory(), Name: "jobtree", Clock: clock, Holds: func() bool { return true },
	})
	if err != nil {
		return nil, err
	}
	leading := make(chan struct{})
	close(leading)
	go c.Start(ctx, leading)
	return plugins.NewFactory(known, client, clock)(ctx, raw, handle)
}
