package controllers

import (
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
)

// byNode indexes Leases by the node where they hold GPUs.
const byNode = "node"

// nodeWatch is what has been seen of nodes, and which of them are to be judged.
type nodeWatch struct {
	args    *config.Args
	rules   nodeloss.Rules // by which nodes are judged
	contact *contact

	mu     sync.Mutex
	sights map[string]*nodeloss.Sight
	// forgiven are nodes that somebody has uncordoned, whose record is to go.
	forgiven map[string]*corev1.Node
	// gpus are the nodes that have, or have had, GPUs: a device plugin may die with its node. marked are those whose
	// object says that their loss is held back, and heldBack those that it is to say so of.
	gpus, marked map[string]bool
	heldBack     map[string]nodeloss.Verdict

	queue workqueue.TypedDelayingInterface[string]
}

func newNodeWatch(args *config.Args) *nodeWatch {
	return &nodeWatch{args: args,
		rules:   nodeloss.Rules{Grace: args.NodeLossGrace.Duration, Conditions: args.LossConditions()},
		contact: &contact{period: min(args.NodeLossGrace.Duration/4, contactPeriod)},
		sights:  map[string]*nodeloss.Sight{}, forgiven: map[string]*corev1.Node{},
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

func (w *nodeWatch) setNode(node *corev1.Node, now time.Time) {
	w.mu.Lock()
	w.sight(node.Name).SeeNode(node, now)
	w.note(node)
	if delete(w.forgiven, node.Name); nodeloss.Forgiven(node) {
		w.forgiven[node.Name] = node
	}
	w.mu.Unlock()
	w.queue.Add(node.Name)
}

// note remembers of a node whether it has GPUs and says that its loss is held back. The lock is held.
func (w *nodeWatch) note(node *corev1.Node) {
	if w.args.GPUResource.On(node) != "" {
		w.gpus[node.Name] = true
	}
	delete(w.marked, node.Name)
	if _, marked := node.Annotations[rqv1.AnnotationHeldBack]; marked {
		w.marked[node.Name] = true
	}
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

// forget drops what was seen of a node that is gone, if it still is: another may have come under its name.
func (w *nodeWatch) forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.sights[name]; s != nil && s.Gone() {
		delete(w.sights, name)
	}
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

// verdict judges a node by what has been seen of it.
func (w *nodeWatch) verdict(name string, now time.Time) nodeloss.Verdict {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.sights[name]
	if s == nil {
		return nodeloss.Verdict{}
	}
	return w.rules.Judge(s, w.heardSince(now), now)
}

// holdBack notes that a node is not taken for lost.
func (w *nodeWatch) holdBack(s suspect) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.heldBack[s.name]; !known {
		w.heldBack[s.name] = s.verdict
	}
}

// back returns from when on a lost node is to be given back; zero for never, as things are.
func (w *nodeWatch) back(name string) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.sights[name]; s != nil {
		return w.rules.Back(s)
	}
	return time.Time{}
}

// heardSince returns since when the API server has answered: nothing is silence while nobody listens.
func (w *nodeWatch) heardSince(now time.Time) time.Time {
	since, ok := w.contact.held(now)
	if !ok {
		return now
	}
	return since
}

// countSigns looks at all nodes with GPUs, whether they hold anything or not.
func (w *nodeWatch) countSigns(now time.Time) nodeloss.Signs {
	w.mu.Lock()
	defer w.mu.Unlock()
	rules, since := w.rules, w.heardSince(now)
	s := nodeloss.Signs{Nodes: len(w.gpus), Limit: w.args.NodesAtOnce(len(w.gpus))}
	for name := range w.gpus {
		if sight := w.sights[name]; sight != nil && rules.Sign(sight, since, now) {
			s.Shown++
		}
	}
	return s
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
func (w *nodeWatch) follow(from *watches, fleet cache.SharedInformer, clock clock.PassiveClock) error {
	if err := from.leases.AddIndexers(cache.Indexers{byNode: nodesOf}); err != nil {
		return fmt.Errorf("indexing Leases: %w", err)
	}
	for _, add := range []func() error{
		func() error {
			return handle(from, fleet, func(o *corev1.Node) { w.setNode(o, clock.Now()) },
				func(o *corev1.Node) { w.removeNode(o.Name) })
		},
		func() error {
			return handle(from, from.leases, func(l *rqv1.Lease) {
				for _, held := range l.Spec.Slice.Nodes {
					w.queue.Add(held.Name)
				}
			}, func(*rqv1.Lease) {})
		},
	} {
		if err := add(); err != nil {
			return err
		}
	}
	_, err := from.heartbeats.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { w.setHeartbeat(o.(*coordinationv1.Lease), clock.Now()) },
		UpdateFunc: func(_, o any) { w.setHeartbeat(o.(*coordinationv1.Lease), clock.Now()) },
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			if lease, ok := o.(*coordinationv1.Lease); ok {
				w.removeHeartbeat(lease.Name)
			}
		},
	})
	return err
}
