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
	nodes, err := c.kwokNodes(ctx)
	if err != nil || nodes.Len() == 0 {
		return err
	}
	return c.Kwok.WaitUntil(ctx, func(ctx context.Context) error { return c.WakePods(ctx, nodes) })
}

// WakePods changes every pod that runs, or should, on some nodes that kwok has come to hold. A kwok looks at the pods
// that it finds before it has noticed that it holds their node's lease, and then leaves them alone until they change.
// Its cache of the leases may be behind, so that it is an error not only as long as a node has no lease, but also as
// long as there is a pod that kwok has yet to start or to end.
func (c *ControlPlane) WakePods(ctx context.Context, nodes sets.Set[string]) error {
	if err := c.leasesHeld(ctx, nodes); err != nil {
		return err
	}
	pods, err := c.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"kwok.x-k8s.io/woken":%q}}}`,
		time.Now().Format(time.RFC3339Nano))
	var group errgroup.Group
	group.SetLimit(16)
	for _, pod := range pods.Items {
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if !nodes.Has(pod.Spec.NodeName) || ended && pod.DeletionTimestamp == nil {
			continue
		}
		group.Go(func() error {
			woken, err := c.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch,
				metav1.PatchOptions{})
			switch {
			case apierrors.IsNotFound(err):
				return nil
			case err == nil && unplayed(woken):
				return fmt.Errorf("kwok has not seen to pod %s: it is %s, told to go at %v", pod.Name, woken.Status.Phase,
					woken.DeletionTimestamp)
			}
			return err
		})
	}
	return group.Wait()
}

// unplayed reports whether kwok has yet to start a pod, or to end it. One that somebody's finalizer holds, or that is
// to take its time, may be there although kwok has seen it.
func unplayed(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp == nil {
		return pod.Status.Phase == corev1.PodPending
	}
	_, slow := pod.Annotations["pod-delete.stage.kwok.x-k8s.io/delay"]
	return len(pod.Finalizers) == 0 && !slow
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
	kubeconfig, err := c.KubeconfigForUser(kwokUser, "system:masters")
	if err != nil {
		return nil, err
	}
	config := filepath.Join(c.options.Dir, "kwok.yaml")
	if err := replaceFile(config, kwokConfig, 0o644); err != nil {
		return nil, err
	}
	return c.process("kwok", "kwok", "--kubeconfig="+kubeconfig, "--config="+config, "--v=WARN")
}
