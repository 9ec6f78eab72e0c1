package backlog

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

const (
	namespace   = "backlog"
	flavor      = "H100-80GB"
	gpuResource = "nvidia.com/gpu"
	patience    = 2 * time.Minute
)

// owner is a queue's: the queues of a cohort are siblings, whose Budgets pay for each other.
func (l *lab) owner(queue int) rqv1.Owner {
	return rqv1.Owner(fmt.Sprintf("org:cohort-%d:queue-%d", queue/l.size.QueuesPerCohort, queue))
}

// loadNodes makes a node for each queue, large enough for the widest pod, and waits until all are ready.
func (l *lab) loadNodes(ctx context.Context) error {
	resources := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("512Gi"),
		corev1.ResourcePods: resource.MustParse("110"), gpuResource: *resource.NewQuantity(queueGPUs, resource.DecimalSI),
	}
	var nodes []corev1.Node
	for i := range l.size.queues() {
		name := fmt.Sprintf("n%03d", i)
		nodes = append(nodes, corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
				Labels: map[string]string{
					"region": "region-0", "cluster": "cluster-0", "fabric.domain": "domain-0",
					"gpu.flavor": flavor, corev1.LabelHostname: name,
				},
			},
			Status: corev1.NodeStatus{Capacity: resources, Allocatable: resources},
		})
	}
	created, err := l.plane.CreateNodes(ctx, nodes)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return l.plane.WaitNodesReady(ctx, created)
}

// loadQueues makes the namespace and a Budget for each queue.
func (l *lab) loadQueues(ctx context.Context) error {
	if _, err := l.kube.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	for queue := range l.size.queues() {
		if err := l.api.Create(ctx, &rqv1.Budget{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("queue-%d", queue)},
			Spec: rqv1.BudgetSpec{Owner: l.owner(queue),
				Envelopes: []rqv1.Envelope{{Name: "all", Flavor: flavor, Concurrency: queueGPUs}}},
		}); err != nil {
			return err
		}
	}
	// Pods cannot be made before it is there.
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		_, err := l.kube.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
}

// warmUp waits until a Run has come and gone: the scheduler knows the nodes and the Budgets then.
func (l *lab) warmUp(ctx context.Context) error {
	run := l.run(0, class{name: "warm-up", gpus: 1, runs: time.Millisecond}, 0)
	if err := l.api.Create(ctx, run); err != nil {
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
		if err := l.api.Create(ctx, run); err != nil {
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
			Resources: rqv1.RunResources{GPUType: flavor, TotalGPUs: c.gpus, GPUsPerPod: &c.gpus},
			Template: &corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
					"pod-complete.stage.kwok.x-k8s.io/delay": c.runs.String(),
				}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "work", Image: "registry.k8s.io/pause:3.10.1"}}},
			},
		},
	}
}
