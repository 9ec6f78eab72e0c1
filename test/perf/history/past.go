package history

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/test/perf/fleet"
)

const (
	namespace = "history"
	owner     = "org:bench"
	nodeGPUs  = 4
	// domainNodes share a fast fabric.
	domainNodes = 18
	// writers write the past, and submit Runs, at the same time.
	writers = 30
)

// loadNodes makes the fleet and waits until it is ready.
func (l *lab) loadNodes(ctx context.Context) error {
	var nodes []corev1.Node
	for i := range l.size.Nodes {
		nodes = append(nodes, fleet.Node(fmt.Sprintf("n%04d", i), fmt.Sprintf("domain-%02d", i/domainNodes), nodeGPUs))
	}
	return l.Load(ctx, nodes)
}

// loadOwner makes the namespace and a Budget for all GPUs, for ever.
func (l *lab) loadOwner(ctx context.Context) error {
	if err := l.Namespace(ctx, namespace); err != nil {
		return err
	}
	hours := int64(1e9)
	return l.API.Create(ctx, &rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: "bench"},
		Spec: rqv1.BudgetSpec{Owner: owner, Envelopes: []rqv1.Envelope{
			{Name: "all", Flavor: fleet.Flavor, Concurrency: int32(l.size.Nodes * nodeGPUs), MaxGPUHours: &hours}}}})
}

// writeLeases writes Leases that ended within the last hour.
func (l *lab) writeLeases(ctx context.Context) error {
	now := time.Now()
	return inParallel(ctx, l.size.Leases, func(ctx context.Context, i int) error {
		start := metav1.NewMicroTime(now.Add(-2 * time.Hour))
		ended := metav1.NewMicroTime(now.Add(-time.Duration(i%3600) * time.Second))
		run := fmt.Sprintf("past-%d", i/4)
		lease := &rqv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s-%d-0123abcd", run, i%4),
				Labels: map[string]string{rqv1.LabelRun: run, rqv1.LabelRole: "Active", rqv1.LabelCohort: "0",
					rqv1.LabelGroupIndex: "0", rqv1.LabelIndex: fmt.Sprint(i % 4), rqv1.LabelPodUID: fmt.Sprintf("pod-%d", i)}},
			Spec: rqv1.LeaseSpec{Owner: owner,
				RunRef: rqv1.LeaseRunRef{Namespace: namespace, Name: run, UID: types.UID("uid-" + run)},
				Slice: rqv1.LeaseSlice{Role: rqv1.RoleActive,
					Nodes: []rqv1.NodeGPUs{{Name: fmt.Sprintf("n%04d", i%l.size.Nodes), GPUs: 1}}},
				Payer:          rqv1.LeasePayer{Budget: "bench", Owner: owner, Relation: rqv1.RelationOwn, Rate: "1"},
				PaidByEnvelope: "all", Reason: rqv1.ReasonStart, Start: start, Admitted: &start, Flavor: fleet.Flavor},
		}
		if err := l.ledger.Create(ctx, lease); err != nil {
			return err
		}
		lease.Status = rqv1.LeaseStatus{Closed: true, Ended: &ended, ClosureReason: rqv1.ClosedCompleted}
		return l.ledger.Status().Update(ctx, lease)
	})
}

// writeRuns writes Runs that have just ended.
func (l *lab) writeRuns(ctx context.Context) error {
	return inParallel(ctx, l.size.Runs, func(ctx context.Context, i int) error {
		run := newRun(fmt.Sprintf("past-%d", i), l.size.PodsPerGang)
		if err := l.API.Create(ctx, run); err != nil {
			return err
		}
		run.Status = rqv1.RunStatus{Phase: rqv1.RunCompleted, ObservedGeneration: run.Generation,
			Message: "completed", Conditions: []metav1.Condition{{Type: rqv1.ConditionFinished, Status: metav1.ConditionTrue,
				Reason: "Completed", LastTransitionTime: metav1.Now(), ObservedGeneration: run.Generation}}}
		return l.ledger.Status().Update(ctx, run)
	})
}

func newRun(name string, pods int) *rqv1.Run {
	perPod, total := int32(1), int32(pods)
	return &rqv1.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: rqv1.RunSpec{Owner: owner,
			Resources: rqv1.RunResources{GPUType: fleet.Flavor, TotalGPUs: total, GPUsPerPod: &perPod},
			Locality:  &rqv1.RunLocality{GroupGPUs: &total},
			Template: &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "pause", Image: "registry.k8s.io/pause:3.10.1"}}}},
		},
	}
}

// inParallel does something so many times, several at a time.
func inParallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}
