package rebind

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// patience is the longest that a sample, or the rest after it, may take.
const patience = 2 * time.Minute

// pod is what has been seen of a pod, and when: made when it was first seen, bound when it was first seen on a node.
type pod struct {
	uid         types.UID
	node        string
	spare       bool
	leaving     bool
	made, bound time.Time
}

// node is what has been seen of a node: recorded is when its record of a loss was first seen, zero while there is none.
type node struct {
	domain   string
	usable   bool
	recorded time.Time
}

// view is the fleet and the pods of Runs as a watch tells them.
type view struct {
	mu      sync.Mutex
	changed chan struct{} // closed, and another one made, at every change
	pods    map[string]pod
	nodes   map[string]node
}

func newView() *view {
	return &view{changed: make(chan struct{}), pods: map[string]pod{}, nodes: map[string]node{}}
}

// watch follows the API until the context ends, and returns once it is up to date.
func (v *view) watch(ctx context.Context, kube kubernetes.Interface) error {
	shared := informers.NewSharedInformerFactory(kube, 0)
	for informer, handlers := range map[cache.SharedIndexInformer]cache.ResourceEventHandlerFuncs{
		shared.Core().V1().Nodes().Informer(): handlers(v, v.setNode, func(n *corev1.Node) { delete(v.nodes, n.Name) }),
		shared.Core().V1().Pods().Informer():  handlers(v, v.setPod, v.removePod),
	} {
		if _, err := informer.AddEventHandler(handlers); err != nil {
			return err
		}
	}
	shared.Start(ctx.Done())
	for kind, synced := range shared.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("watching %s: %w", kind, context.Cause(ctx))
		}
	}
	return nil
}

// handlers calls set for what is there and remove for what is gone, one at a time.
func handlers[T any](v *view, set func(T, time.Time), remove func(T)) cache.ResourceEventHandlerFuncs {
	locked := func(do func()) {
		v.mu.Lock()
		defer v.mu.Unlock()
		do()
		close(v.changed)
		v.changed = make(chan struct{})
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { now := time.Now(); locked(func() { set(o.(T), now) }) },
		UpdateFunc: func(_, o any) { now := time.Now(); locked(func() { set(o.(T), now) }) },
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			locked(func() { remove(o.(T)) })
		},
	}
}

func (v *view) setNode(n *corev1.Node, now time.Time) {
	seen := node{domain: n.Labels[domainLabel], usable: !n.Spec.Unschedulable && len(n.Spec.Taints) == 0}
	if _, lost := n.Annotations[rqv1.AnnotationLost]; lost {
		seen.usable = false
		seen.recorded = v.nodes[n.Name].recorded
		if seen.recorded.IsZero() {
			seen.recorded = now
		}
	}
	v.nodes[n.Name] = seen
}

func (v *view) setPod(p *corev1.Pod, now time.Time) {
	if p.Labels[rqv1.LabelRun] == "" || p.Namespace != namespace {
		return
	}
	seen := v.pods[p.Name]
	if seen.uid != p.UID {
		seen = pod{uid: p.UID, made: now, spare: p.Labels[rqv1.LabelRole] == string(rqv1.RoleSpare)}
	}
	seen.leaving = p.DeletionTimestamp != nil
	if seen.node == "" && p.Spec.NodeName != "" {
		seen.node, seen.bound = p.Spec.NodeName, now
	}
	v.pods[p.Name] = seen
}

func (v *view) removePod(p *corev1.Pod) {
	if p.Namespace == namespace && v.pods[p.Name].uid == p.UID {
		delete(v.pods, p.Name)
	}
}

// until waits until there is nothing against what has been seen.
func (v *view) until(ctx context.Context, against func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		v.mu.Lock()
		problem, changed := against(), v.changed
		v.mu.Unlock()
		if problem == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), problem)
		case <-changed:
		}
	}
}

// atRest is against a world in which not every one of so many pods is bound, or a node is not usable. The lock is held.
func (v *view) atRest(pods int) error {
	bound := 0
	for _, p := range v.pods {
		if p.node != "" && !p.leaving && v.nodes[p.node].usable {
			bound++
		}
	}
	unusable := 0
	for _, n := range v.nodes {
		if !n.usable {
			unusable++
		}
	}
	if bound != pods || len(v.pods) != pods || unusable > 0 {
		return fmt.Errorf("%d of %d pods are bound, want %d; %d nodes are not usable", bound, len(v.pods), pods, unusable)
	}
	return nil
}
