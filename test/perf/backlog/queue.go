package backlog

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/test/perf/fleet"
)

const (
	namespace = "backlog"
	patience  = 2 * time.Minute
)

// cohort is the parent of a queue's owner: the queues of a cohort are siblings, whose Budgets pay for each other.
func (l *lab) cohort(queue int) rqv1.Owner {
	return rqv1.Owner(fmt.Sprintf("org:cohort-%d", queue/l.size.QueuesPerCohort))
}

func (l *lab) owner(queue int) rqv1.Owner {
	return rqv1.Owner(fmt.Sprintf("%s:queue-%d", l.cohort(queue), queue))
}

// loadNodes makes a node for each queue, large enough for the widest pod, and waits until all are ready.
func (l *lab) loadNodes(ctx context.Context) error {
	var nodes []corev1.Node
	for i := range l.size.queues() {
		nodes = append(nodes, fleet.Node(fmt.Sprintf("n%03d", i), "domain-0", queueGPUs))
	}
	return l.Load(ctx, nodes)
}

// loadQueues makes the namespace and a Budget for each queue.
func (l *lab) loadQueues(ctx context.Context) error {
	if err := l.Namespace(ctx, namespace); err != nil {
		return err
	}
	for queue := range l.size.queues() {
		if err := l.API.Create(ctx, &rqv1.Budget{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("queue-%d", queue)},
			Spec: rqv1.BudgetSpec{Owner: l.owner(queue), Parents: []rqv1.Owner{l.cohort(queue)},
				Envelopes: []rqv1.Envelope{{Name: "all", Flavor: fleet.Flavor, Concurrency: queueGPUs}}},
		}); err != nil {
			return err
		}
	}
	return nil
}

// warmUp waits until a Run has come and gone: the scheduler knows the nodes and the Budgets then.
func (l *lab) warmUp(ctx context.Context) error {
	run := l.run(0, class{name: "warm-up", gpus: 1, runs: time.Millisecond}, 0)
	if err := l.API.Create(ctx, run); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := l.view.until(ctx, 1, func(int, int) {}); err != nil {
		return err
	}
	l.view.forget()
	return nil
}

// submit creates a queue's Runs of a class, one every interval. One that is late is followed by the next at once.
func (l *lab) submit(ctx context.Context, queue int, c class) error {
	ticker := time.NewTicker(c.interval)
	defer ticker.Stop()
	for i := range l.size.perQueue(c) {
		run := l.run(queue, c, i)
		l.view.submit(run.Name)
		if err := l.API.Create(ctx, run); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
	return nil
}

func (l *lab) run(queue int, c class, i int) *rqv1.Run {
	return &rqv1.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s-%d-%d", c.name, queue, i)},
		Spec: rqv1.RunSpec{
			Owner:     l.owner(queue),
			Resources: rqv1.RunResources{GPUType: fleet.Flavor, TotalGPUs: c.gpus, GPUsPerPod: &c.gpus},
			Template: &corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
					"pod-complete.stage.kwok.x-k8s.io/delay": c.runs.String(),
				}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "work", Image: "registry.k8s.io/pause:3.10.1"}}},
			},
		},
	}
}
