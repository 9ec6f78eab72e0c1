package rebind

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
	namespace   = "rebind"
	domainLabel = "fabric.domain"
	// nodeGPUs is how many GPUs a node has, and a pod, and domainNodes how many nodes share a fast fabric.
	nodeGPUs    = 4
	domainNodes = 18
)

// gang is a Run of one group with one spare.
type gang struct {
	name string
	pods int
}

// rank returns the name of the pod of a rank.
func (g gang) rank(index int) string { return fmt.Sprintf("%s-%d", g.name, index%g.pods) }

// fleetNode is a node that kwok plays.
func fleetNode(index int) corev1.Node {
	return fleet.Node(fmt.Sprintf("n%04d", index), fmt.Sprintf("domain-%02d", index/domainNodes), nodeGPUs)
}

// loadNodes creates the fleet and waits until it is ready.
func (l *lab) loadNodes(ctx context.Context, count int) error {
	var nodes []corev1.Node
	for i := range count {
		nodes = append(nodes, fleetNode(i))
	}
	return l.Load(ctx, nodes)
}

// loadOwner makes the namespace and a Budget for all GPUs.
func (l *lab) loadOwner(ctx context.Context, gpus int32) error {
	if err := l.Namespace(ctx, namespace); err != nil {
		return err
	}
	return l.API.Create(ctx, &rqv1.Budget{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec: rqv1.BudgetSpec{Owner: "org:bench",
			Envelopes: []rqv1.Envelope{{Name: "all", Flavor: fleet.Flavor, Concurrency: gpus}}},
	})
}

// submit starts Runs and waits until they run. Each may be requeued, so that no loss ends one for good.
func (l *lab) submit(ctx context.Context, prefix string, count, pods int) error {
	for i := range count {
		g := gang{name: fmt.Sprintf("%s-%03d", prefix, i), pods: pods}
		if err := l.API.Create(ctx, g.run()); err != nil {
			return err
		}
		l.gangs = append(l.gangs, g)
		l.pods += pods + 1
	}
	return l.rest(ctx)
}

func (g gang) run() *rqv1.Run {
	total, perPod, spares := int32(g.pods*nodeGPUs), int32(nodeGPUs), int32(nodeGPUs)
	return &rqv1.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: g.name},
		Spec: rqv1.RunSpec{
			Owner:          "org:bench",
			Resources:      rqv1.RunResources{GPUType: fleet.Flavor, TotalGPUs: total, GPUsPerPod: &perPod},
			Locality:       &rqv1.RunLocality{GroupGPUs: &total},
			SparesPerGroup: &spares,
			Runtime:        &rqv1.RunRuntime{Checkpoint: &metav1.Duration{Duration: time.Minute}},
			// Its pods have the usual grace, which a kubelet that is dead never confirms.
			Template: &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "train", Image: "registry.k8s.io/pause:3.10.1"}},
			}},
		},
	}
}
