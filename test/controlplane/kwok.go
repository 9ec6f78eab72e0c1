package controlplane

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// kwokAnnotation marks the Nodes whose kubelet kwok plays.
const kwokAnnotation = "kwok.x-k8s.io/node"

//go:embed kwok.yaml
var kwokConfig []byte

// StartKwok starts kwok, again after a Kill or Stop. A running one is left alone.
func (c *ControlPlane) StartKwok(ctx context.Context) error {
	if c.Kwok.Running() {
		return nil
	}
	// A kwok takes no node whose lease another one holds, dead or not, until the lease expires.
	leases := c.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	if err := leases.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return err
	}
	if err := c.Kwok.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return c.wakePods(ctx)
}

// wakePods changes every pod that runs, or should, on a node of kwok's. A kwok that starts looks at the pods that it
// finds before it has noticed that it holds their node's lease, and then leaves them alone until they change.
func (c *ControlPlane) wakePods(ctx context.Context) error {
	nodes, err := c.kwokNodes(ctx)
	if err != nil || nodes.Len() == 0 {
		return err
	}
	if err := c.Kwok.WaitUntil(ctx, func(ctx context.Context) error { return c.leasesHeld(ctx, nodes) }); err != nil {
		return err
	}
	pods, err := c.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: "status.phase!=Succeeded,status.phase!=Failed",
	})
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"kwok.x-k8s.io/woken":%q}}}`,
		time.Now().Format(time.RFC3339Nano))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for _, pod := range pods.Items {
		if !nodes.Has(pod.Spec.NodeName) {
			continue
		}
		group.Go(func() error {
			_, err := c.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch,
				metav1.PatchOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
	}
	return group.Wait()
}

// kwokNodes are the names of the nodes that kwok plays.
func (c *ControlPlane) kwokNodes(ctx context.Context) (sets.Set[string], error) {
	nodes, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	names := sets.New[string]()
	for _, node := range nodes.Items {
		if node.Annotations[kwokAnnotation] == "fake" {
			names.Insert(node.Name)
		}
	}
	return names, nil
}

// leasesHeld is an error unless every one of the nodes has a kubelet lease.
func (c *ControlPlane) leasesHeld(ctx context.Context, nodes sets.Set[string]) error {
	leases, err := c.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	held := sets.New[string]()
	for _, lease := range leases.Items {
		held.Insert(lease.Name)
	}
	if missing := nodes.Difference(held).Len(); missing > 0 {
		return fmt.Errorf("%d of %d nodes have no lease", missing, nodes.Len())
	}
	return nil
}

// kwok runs with all rights, as the many kubelets do that it stands in for.
func (c *ControlPlane) kwok() (*Process, error) {
	kubeconfig, err := c.KubeconfigForUser("kwok", "system:masters")
	if err != nil {
		return nil, err
	}
	config := filepath.Join(c.options.Dir, "kwok.yaml")
	if err := replaceFile(config, kwokConfig, 0o644); err != nil {
		return nil, err
	}
	return c.process("kwok", "kwok", "--kubeconfig="+kubeconfig, "--config="+config, "--v=WARN")
}
