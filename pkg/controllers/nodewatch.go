package controllers

import (
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
)

// byNode indexes Leases by the node where they hold GPUs.
const byNode = "node"

// nodeWatch is what has been seen of nodes, and which of them are to be judged.
type nodeWatch struct {
	mu     sync.Mutex
	sights map[string]*nodeloss.Sight
	// forgiven are nodes that a person has uncordoned, whose record is to go.
	forgiven map[string]*corev1.Node
	// gpus are the nodes that have, or have had, GPUs: a device plugin may die with its node. marked are those whose
	// object says that their loss is held back, and heldBack those that it is to say so of.
	gpus, marked map[string]bool
	heldBack     map[string]nodeloss.Verdict
	contact      contact
	queue        workqueue.TypedDelayingInterface[string]
}

func newNodeWatch() *nodeWatch {
	return &nodeWatch{sights: map[string]*nodeloss.Sight{}, forgiven: map[string]*corev1.Node{},
		gpus: map[string]bool{}, marked: map[string]bool{}, heldBack: map[string]nodeloss.Verdict{},
		queue: workqueue.NewTypedDelayingQueue[string]()}
}

// sight returns what has been seen of a node. The lock is held.
func (w *nodeWatch) sight(name string) *nodeloss.Sight {
	s := w.sights[name]
	if s == nil {
		s = &nodeloss.Sight{}
		w.sights[name] = s
	}
	return s
}

// see notes a Node as the API server has it.
func (w *nodeWatch) see(node *corev1.Node, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sight(node.Name).SeeNode(node, now)
}

func (w *nodeWatch) setNode(node *corev1.Node, gpus corev1.ResourceName, now time.Time) {
	w.mu.Lock()
	w.sight(node.Name).SeeNode(node, now)
	w.note(node, gpus)
	if delete(w.forgiven, node.Name); nodeloss.Forgiven(node) {
		w.forgiven[node.Name] = node
	}
	w.mu.Unlock()
	w.queue.Add(node.Name)
}

func (w *nodeWatch) removeNode(name string) {
	w.mu.Lock()
	w.sight(name).SeeDeletion()
	delete(w.forgiven, name)
	delete(w.gpus, name)
	delete(w.marked, name)
	w.mu.Unlock()
	w.queue.Add(name)
}

// forget drops what was seen of a node that is gone.
func (w *nodeWatch) forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.sights, name)
}

// setHeartbeat notes a renewal. The node is judged when its time has come, not now.
func (w *nodeWatch) setHeartbeat(lease *coordinationv1.Lease, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if lease.Spec.RenewTime != nil {
		w.sight(lease.Name).SeeHeartbeat(lease.Spec.RenewTime.Time, now) // also before its node is seen
	}
}

func (w *nodeWatch) removeHeartbeat(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.sights[name]; s != nil {
		s.LoseHeartbeat()
	}
}

// nodesOf returns the nodes where a Lease holds GPUs, for the index.
func nodesOf(o any) ([]string, error) {
	var out []string
	for _, held := range o.(*rqv1.Lease).Spec.Slice.Nodes {
		out = append(out, held.Name)
	}
	return out, nil
}

// follow has nodes followed that hold Leases.
func (n *nodes) follow(w *watches, fleet cache.SharedInformer) error {
	if err := w.leases.AddIndexers(cache.Indexers{byNode: nodesOf}); err != nil {
		return fmt.Errorf("indexing Leases: %w", err)
	}
	for _, add := range []func() error{
		func() error {
			return handle(w, fleet, func(o *corev1.Node) {
				n.seen.setNode(o, corev1.ResourceName(n.args.GPUResource), n.clock.Now())
			},
				func(o *corev1.Node) { n.seen.removeNode(o.Name) })
		},
		func() error {
			return handle(w, w.leases, func(l *rqv1.Lease) {
				for _, held := range l.Spec.Slice.Nodes {
					n.seen.queue.Add(held.Name)
				}
			}, func(*rqv1.Lease) {})
		},
	} {
		if err := add(); err != nil {
			return err
		}
	}
	_, err := w.heartbeats.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { n.seen.setHeartbeat(o.(*coordinationv1.Lease), n.clock.Now()) },
		UpdateFunc: func(_, o any) { n.seen.setHeartbeat(o.(*coordinationv1.Lease), n.clock.Now()) },
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			if lease, ok := o.(*coordinationv1.Lease); ok {
				n.seen.removeHeartbeat(lease.Name)
			}
		},
	})
	return err
}
