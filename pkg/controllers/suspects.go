package controllers

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/suspicion"
)

// suspects records on Nodes what speaks against them (R34).
type suspects struct {
	kube   kubernetes.Interface
	events events.EventRecorder
	clock  clock.Clock
	runs   cache.SharedIndexInformer
	nodes  cache.SharedIndexInformer
	args   *config.Args

	// unseen are the marks that this process wrote last, by node: a cache may not have them yet.
	unseen map[string]unseenMarks
	// full are those by whose word as many nodes are suspect as may be.
	full map[rqv1.Owner]bool

	mu    sync.Mutex
	tally *suspicion.Tally
	queue workqueue.TypedDelayingInterface[types.NamespacedName]
}

// unseenMarks are the marks on a Node, which were written when it had a resource version.
type unseenMarks struct {
	record suspicion.Record
	since  string
}

func newSuspects(o *Options, runs, nodes cache.SharedIndexInformer) *suspects {
	return &suspects{kube: o.Kube, events: o.events, clock: o.Clock, runs: runs, nodes: nodes, args: o.Args,
		tally: suspicion.NewTally(), unseen: map[string]unseenMarks{}, full: map[rqv1.Owner]bool{},
		queue: workqueue.NewTypedDelayingQueue[types.NamespacedName]()}
}

// note has a Run be looked at whose ranks have died.
func (s *suspects) note(run *rqv1.Run) {
	if len(run.Status.Deaths) == 0 {
		return
	}
	s.mu.Lock()
	s.tally.Note(run)
	s.mu.Unlock()
	s.queue.Add(types.NamespacedName{Namespace: run.Namespace, Name: run.Name})
}

func (s *suspects) drop(run *rqv1.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tally.Drop(run.UID)
}

// work records what speaks against nodes, until the context ends.
func (s *suspects) work(ctx context.Context) {
	defer s.queue.ShutDown()
	go func() {
		<-ctx.Done()
		s.queue.ShutDown()
	}()
	for {
		key, down := s.queue.Get()
		if down {
			return
		}
		s.look(ctx, key)
		s.queue.Done(key)
	}
}

// look records what the status of one Run says against nodes.
func (s *suspects) look(ctx context.Context, key types.NamespacedName) {
	o, there, err := s.runs.GetStore().GetByKey(key.String())
	if err != nil || !there {
		return
	}
	run, now := o.(*rqv1.Run), s.clock.Now()
	findings, due := suspicion.Told(run, now)
	s.mu.Lock()
	findings = append(findings, s.tally.On(run.UID, now)...)
	s.mu.Unlock()
	if !due.IsZero() {
		s.queue.AddAfter(key, due.Sub(now)+debounce)
	}
	for i := range findings {
		if err := s.record(ctx, &findings[i]); err != nil {
			klog.FromContext(ctx).V(2).Info("Retrying to mark a node as suspect", "node", findings[i].Node, "err", err)
			s.queue.AddAfter(key, retryNode)
			return
		}
	}
}

// markedBy returns how many nodes are suspect by one owner's word or, without an owner, by that of any two, and how
// many may be: as many as may show a sign of loss at once. Nobody is to keep spares off a whole fleet, and what befalls
// many programs at once, such as a file server that is away, is not the fault of all their nodes.
func (s *suspects) markedBy(owner rqv1.Owner) (marked, most int) {
	withGPUs, now := 0, s.clock.Now()
	for _, o := range s.nodes.GetStore().List() {
		node := o.(*corev1.Node)
		if s.args.GPUResource.On(node) != "" {
			withGPUs++
		}
		if s.recordOf(node).By(owner, now) {
			marked++
		}
	}
	return marked, s.args.NodesAtOnce(withGPUs)
}

// recordOf returns what speaks against a Node that the cache has.
func (s *suspects) recordOf(node *corev1.Node) suspicion.Record {
	if own, unseen := s.unseen[node.Name]; unseen && own.since == node.ResourceVersion {
		return own.record
	}
	delete(s.unseen, node.Name)
	return suspicion.Of(node)
}

// record puts a mark on a Node that does not have it, as far as the cache knows: the patch fails if that is behind.
func (s *suspects) record(ctx context.Context, f *suspicion.Finding) error {
	o, there, err := s.nodes.GetStore().GetByKey(f.Node)
	if err != nil || !there {
		return err
	}
	node := o.(*corev1.Node)
	if f.At.Before(node.CreationTimestamp.Time) {
		return nil // it speaks against another machine of that name, or against what was repaired
	}
	record, added := s.recordOf(node).With(f.Mark)
	if !added || s.isFull(ctx, f) {
		return nil
	}
	err = patchNode(ctx, s.kube, node.Name, map[string]any{"metadata": map[string]any{"uid": node.UID,
		"resourceVersion": node.ResourceVersion,
		"annotations":     map[string]any{rqv1.AnnotationSuspect: record.String()}}})
	if err == nil {
		s.unseen[node.Name] = unseenMarks{record, node.ResourceVersion}
		tellNode(s.events, node.Name, corev1.EventTypeWarning, "Suspect", "jobtree avoids the node when it has a choice: "+
			f.Message)
	}
	return err
}

// isFull reports whether as many nodes are suspect as may be by the word by which another is to be. That is told once,
// until fewer are.
func (s *suspects) isFull(ctx context.Context, f *suspicion.Finding) bool {
	marked, most := s.markedBy(f.Owner)
	told := s.full[f.Owner]
	if marked < most {
		delete(s.full, f.Owner)
		return false
	}
	s.full[f.Owner] = true
	if told {
		return true
	}
	whose := "ranks of two owners each"
	if f.Owner != "" {
		whose = "ranks of owner " + string(f.Owner)
	}
	klog.FromContext(ctx).Error(nil, "No more nodes are marked as suspect: as many are as nodeLossLimit allows; the "+
		"nodes may not be the cause", "for", whose, "suspect", marked, "first", f.Node, "why", f.Message)
	tellNode(s.events, f.Node, corev1.EventTypeWarning, "NotSuspected", fmt.Sprintf("this node and others are not "+
		"marked as suspect, because %d nodes already are for %s, as many as nodeLossLimit allows: the nodes may not be "+
		"the cause",
		marked, whose))
	return true
}
