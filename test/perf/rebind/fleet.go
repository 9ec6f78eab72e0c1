package rebind

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
	namespace   = "rebind"
	flavor      = "H100-80GB"
	gpuResource = "nvidia.com/gpu"
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
	name := fmt.Sprintf("n%04d", index)
	resources := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("512Gi"),
		corev1.ResourcePods: resource.MustParse("110"), gpuResource: *resource.NewQuantity(nodeGPUs, resource.DecimalSI),
	}
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			Labels: map[string]string{
				"region": "region-0", "cluster": "cluster-0", domainLabel: fmt.Sprintf("domain-%02d", index/domainNodes),
				"gpu.flavor": flavor, corev1.LabelHostname: name,
			},
		},
		Status: corev1.NodeStatus{Capacity: resources, Allocatable: resources},
	}
}

// loadNodes creates the fleet and waits until it is ready.
func (l *lab) loadNodes(ctx context.Context, count int) error {
	var nodes []corev1.Node
	for i := range count {
		nodes = append(nodes, fleetNode(i))
	}
	created, err := l.plane.CreateNodes(ctx, nodes)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return l.plane.WaitNodesReady(ctx, created)
}

// loadOwner makes the namespace and a Budget for all GPUs.
func (l *lab) loadOwner(ctx context.Context, gpus int32) error {
	if _, err := l.kube.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := l.api.Create(ctx, &rqv1.Budget{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec: rqv1.BudgetSpec{Owner: "org:bench",
			Envelopes: []rqv1.Envelope{{Name: "all", Flavor: flavor, Concurrency: gpus}}},
	}); err != nil {
		return err
	}
	// Pods cannot be made before it is there.
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		_, err := l.kube.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
}

// submit starts Runs and waits until they run. Each may be requeued, so that no loss ends one for good.
func (l *lab) submit(ctx context.Context, prefix string, count, pods int) error {
	for i := range count {
		g := gang{name: fmt.Sprintf("%s-%03d", prefix, i), pods: pods}
		if err := l.api.Create(ctx, g.run()); err != nil {
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
			Resources:      rqv1.RunResources{GPUType: flavor, TotalGPUs: total, GPUsPerPod: &perPod},
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
