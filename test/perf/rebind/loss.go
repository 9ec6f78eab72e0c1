package rebind

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// loss is a set of nodes that are lost together, and the ranks that were on them.
type loss struct {
	// leases are the kubelets' as they were, by node.
	leases map[string]coordinationv1.LeaseSpec
	ranks  map[string]types.UID
	// began is when the evidence began to be written, and written when the API server had taken all of it.
	began, written time.Time
}

// strike has nodes be lost. Their kubelets die first, so that nobody confirms the end of their pods; then each of them
// gets the taint that says that it is out of service, which is the evidence.
func (l *lab) strike(ctx context.Context, nodes []string) (*loss, error) {
	lost := &loss{leases: map[string]coordinationv1.LeaseSpec{}, ranks: map[string]types.UID{}}
	for _, name := range nodes {
		if err := l.silence(ctx, lost, name); err != nil {
			return lost, err
		}
	}
	l.view.mu.Lock()
	for name, p := range l.view.pods {
		if slices.Contains(nodes, p.node) && !p.spare {
			lost.ranks[name] = p.uid
		}
	}
	l.view.mu.Unlock()
	taint := corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}
	lost.began = time.Now()
	err := l.patchNodes(ctx, nodes, map[string]any{"spec": map[string]any{"taints": []corev1.Taint{taint}}})
	lost.written = time.Now()
	return lost, err
}

// silence ends a node's kubelet: somebody who does not renew its lease takes it over, and kwok leaves the node alone.
func (l *lab) silence(ctx context.Context, lost *loss, name string) error {
	leases := l.Kube.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	was, err := leases.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	dead := was.Spec.DeepCopy()
	nobody, hours := "nobody", int32(36000)
	dead.HolderIdentity, dead.LeaseDurationSeconds = &nobody, &hours
	dead.RenewTime = nil // stays as the kubelet wrote it last
	lease, err := l.patchLease(ctx, name, dead)
	if err != nil {
		return err
	}
	was.Spec.RenewTime = lease.Spec.RenewTime
	lost.leases[name] = was.Spec
	return nil
}

// heal brings the kubelets back and then, as a person would, takes the taints off the nodes and uncordons them.
func (l *lab) heal(ctx context.Context, lost *loss) error {
	var nodes []string
	for name, spec := range lost.leases {
		now := metav1.NowMicro()
		spec.RenewTime = &now
		if _, err := l.patchLease(ctx, name, &spec); err != nil {
			return err
		}
		nodes = append(nodes, name)
	}
	return l.patchNodes(ctx, nodes, map[string]any{"spec": map[string]any{"taints": nil, "unschedulable": nil}})
}

func (l *lab) patchLease(ctx context.Context, name string, spec *coordinationv1.LeaseSpec) (*coordinationv1.Lease,
	error) {
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return nil, err
	}
	return l.Kube.CoordinationV1().Leases(corev1.NamespaceNodeLease).Patch(ctx, name, types.MergePatchType, patch,
		metav1.PatchOptions{})
}

// patchNodes makes the same change to nodes, all at once.
func (l *lab) patchNodes(ctx context.Context, nodes []string, change map[string]any) error {
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range nodes {
		group.Go(func() error {
			_, err := l.Kube.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		})
	}
	return group.Wait()
}

// replaced is against a world in which a lost rank is not bound again. The lock is held.
func (v *view) replaced(lost *loss) error {
	var missing []string
	for rank, uid := range lost.ranks {
		if p, there := v.pods[rank]; !there || p.uid == uid || p.node == "" {
			missing = append(missing, rank)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	others := 0
	for name, n := range v.nodes {
		if _, struck := lost.leases[name]; !struck && !n.usable {
			others++
		}
	}
	return fmt.Errorf("lost ranks %v are not bound again; %d other nodes are not usable, lost for silence if the "+
		"machine is too busy for kwok", missing, others)
}

// recorded is against a world in which a node's loss is not recorded on it. The lock is held.
func (v *view) recorded(lost *loss) error {
	for name := range lost.leases {
		if v.nodes[name].recorded.IsZero() {
			return fmt.Errorf("the loss of node %s is not recorded", name)
		}
	}
	return nil
}
