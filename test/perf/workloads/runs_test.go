package workloads

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/kubernetes/pkg/scheduler"
	perf "k8s.io/kubernetes/test/integration/scheduler_perf"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/controllers"
	"github.com/davidlangworthy/jobtree/pkg/plugins"
)

// submitters create Runs at the same time: as many as the library's own createPods.
const submitters = 30

// clients are those of what is created.
type clients struct {
	runs client.Client
	kube kubernetes.Interface
}

// creation creates the i-th gang, of so many pods by a Run's template, which may have to lie together in one domain.
type creation func(ctx context.Context, c clients, template *rqv1.Run, i, pods int, together bool) error

// submit returns the step that follows the creation of the Nodes: Budgets, one Run to warm up, then the clock starts,
// the gangs are created, and all their pods are waited for. It runs there because the library has no operation that
// waits for pods which it did not create itself.
func submit(s *stopwatch, create creation) perf.NodeUpdateFn {
	return func(tCtx ktesting.TContext, sched *scheduler.Scheduler, _ *perf.Workload, nodes *corev1.NodeList) error {
		plugins.TellOfRuns(sched, nil) // nearly as cmd/scheduler does
		plugins.KeepPods(sched)
		c, err := controllers.NewClient(tCtx.RESTConfig())
		if err != nil {
			return err
		}
		template, err := runTemplate()
		if err != nil {
			return err
		}
		if err := createBudgets(tCtx, c, nodes.Items); err != nil {
			return err
		}
		if err := warmUp(tCtx, c, template); err != nil {
			return err
		}
		together := strings.Contains(tCtx.Name(), "/TopologyGangs/")
		s.start()
		if err := createGangs(tCtx, s.gangs, func(i int) error {
			return create(tCtx, clients{c, tCtx.Client()}, template, i, s.podsPerGang, together)
		}); err != nil {
			return err
		}
		return s.wait(tCtx, patience)
	}
}

func runTemplate() (*rqv1.Run, error) {
	data, err := os.ReadFile("templates/run.yaml")
	if err != nil {
		return nil, err
	}
	run := &rqv1.Run{}
	return run, yaml.UnmarshalStrict(data, run)
}

// createGangs creates so many gangs, several at the same time.
func createGangs(ctx context.Context, gangs int, create func(i int) error) error {
	var mu sync.Mutex
	var errs []error
	workqueue.ParallelizeUntil(ctx, min(submitters, gangs), gangs, func(i int) {
		if err := create(i); err != nil {
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		}
	})
	return errors.Join(errs...)
}

// createRun creates a Run for a gang.
func createRun(ctx context.Context, c clients, template *rqv1.Run, i, pods int, together bool) error {
	run := newRun(template, fmt.Sprintf("run-%d", i), i, pods)
	if together {
		run.Spec.Locality = &rqv1.RunLocality{GroupGPUs: &run.Spec.Resources.TotalGPUs}
	}
	return c.runs.Create(ctx, run)
}

// newRun makes a Run of pods that hold one GPU each.
func newRun(template *rqv1.Run, name string, i, pods int) *rqv1.Run {
	run := template.DeepCopy()
	run.Name, run.Namespace = name, namespace
	run.Spec.Owner = team(i)
	run.Spec.Resources.TotalGPUs = int32(pods)
	return run
}
