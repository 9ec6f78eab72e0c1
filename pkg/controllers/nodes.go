package controllers

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
)

// retryNode is how long until a node is looked at again whose loss could not be found out or recorded.
const retryNode = time.Second

// nodeJudge finds out which nodes are lost, and records it.
type nodeJudge struct {
	book   *book.Book
	kube   kubernetes.Interface
	events events.EventRecorder
	clock  clock.Clock
	leads  func() bool
	leases cache.SharedIndexInformer // the open ones, by node
	seen   *nodeWatch
	limit  *lossLimit
}

// watch judges the nodes that hold Leases, until the context ends: when something is seen of them, and when they have
// been silent for too long. Nodes that are due at the same time are judged, and lost, together.
func (n *nodeJudge) watch(ctx context.Context) {
	defer n.seen.queue.ShutDown()
	go func() {
		<-ctx.Done()
		n.seen.queue.ShutDown()
	}()
	for {
		first, shutdown := n.seen.queue.Get()
		if shutdown {
			return
		}
		<-n.clock.After(debounce)
		due := []string{first}
		for n.seen.queue.Len() > 0 {
			name, _ := n.seen.queue.Get()
			due = append(due, name)
		}
		slices.Sort(due)
		n.judge(ctx, due)
		for _, name := range due {
			n.seen.queue.Done(name)
		}
	}
}

// finding is a node with the evidence against it.
type finding struct {
	node    *corev1.Node
	verdict nodeloss.Verdict
}

// judge looks at nodes together, and records those that are lost.
func (n *nodeJudge) judge(ctx context.Context, names []string) {
	if !n.leads() { // the book takes nothing for lost that cannot be recorded
		for _, name := range names {
			n.seen.queue.AddAfter(name, retryNode)
		}
		return
	}
	began := n.clock.Now()
	n.tidyNodes(ctx, names)
	n.giveBack(ctx, names)
	var suspects []suspect
	for _, name := range names {
		if verdict, yes := n.suspected(name, began); yes {
			suspects = append(suspects, suspect{name, verdict})
		}
	}
	suspects = n.limit.free(suspects, began)
	if len(suspects) == 0 {
		return
	}
	found := make([]*finding, len(suspects))
	if err := inParallel(len(suspects), func(i int) (err error) {
		found[i], err = n.confirm(ctx, suspects[i].name)
		return err
	}); err != nil {
		klog.FromContext(ctx).V(2).Info("Retrying to judge nodes", "err", err)
	}
	found = slices.DeleteFunc(found, func(f *finding) bool { return f == nil })
	n.lose(ctx, n.freeStill(found), began)
}

// freeStill asks about what has been confirmed whether it is held back: more nodes may show a sign by now.
func (n *nodeJudge) freeStill(found []*finding) []*finding {
	suspects := make([]suspect, len(found))
	for i, f := range found {
		suspects[i] = suspect{f.node.Name, f.verdict}
	}
	free := map[string]bool{}
	for _, s := range n.limit.free(suspects, n.clock.Now()) {
		free[s.name] = true
	}
	return slices.DeleteFunc(found, func(f *finding) bool { return !free[f.node.Name] })
}

// suspected reports whether what has been seen of a node that holds Leases is evidence that it is lost. If it is going
// to be, the node is looked at then.
func (n *nodeJudge) suspected(name string, now time.Time) (nodeloss.Verdict, bool) {
	holding, err := n.leases.GetIndexer().IndexKeys(byNode, name)
	verdict := n.seen.verdict(name, now)
	switch {
	case verdict.Reason == nodeloss.Deleted:
		if n.seen.forget(name); len(holding) > 0 {
			metrics.NodesLost.WithLabelValues(string(verdict.Reason)).Inc() // the book knows: there is nothing to record it on
		}
	case err != nil || len(holding) == 0: // looked at again once it holds something
	case verdict.Lost && !n.book.Recorded(name):
		return verdict, true
	case !verdict.Lost && !verdict.Again.IsZero():
		n.seen.queue.AddAfter(name, verdict.Again.Sub(now)+debounce)
	}
	return nodeloss.Verdict{}, false
}

// confirm judges a node anew by what the API server itself says: a cache may be behind. It returns nil for one that is
// not lost after all.
func (n *nodeJudge) confirm(ctx context.Context, name string) (*finding, error) {
	node, err := n.kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil // its deletion is on its way
	}
	if err == nil {
		n.seen.see(node, n.clock.Now())
		err = n.listen(ctx, node)
	}
	if err != nil {
		n.seen.queue.AddAfter(name, retryNode)
		return nil, fmt.Errorf("confirming that node %s is lost: %w", name, err)
	}
	now := n.clock.Now()
	verdict := n.seen.verdict(name, now)
	if _, recorded := nodeloss.Recorded(node); recorded {
		return nil, nil // the record is on its way
	}
	if !verdict.Lost {
		if !verdict.Again.IsZero() {
			n.seen.queue.AddAfter(name, verdict.Again.Sub(now)+debounce)
		}
		return nil, nil
	}
	return &finding{node, verdict}, nil
}

// listen notes when the kubelet was heard last. That does not matter for a node that says of itself that it is lost.
func (n *nodeJudge) listen(ctx context.Context, node *corev1.Node) error {
	if _, _, evident := n.seen.rules.Evident(node); evident {
		return nil
	}
	lease, err := n.kube.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, node.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && lease.Spec.RenewTime == nil:
		n.seen.removeHeartbeat(node.Name)
		return nil
	case err == nil:
		n.seen.setHeartbeat(lease, n.clock.Now())
	}
	return err
}

// lose records nodes as lost, all of them before anything is done about any.
func (n *nodeJudge) lose(ctx context.Context, found []*finding, began time.Time) {
	if len(found) == 0 {
		return
	}
	var names []string
	for _, f := range found {
		names = append(names, f.node.Name)
	}
	n.book.SetLosing(names, true)
	_ = inParallel(len(found), func(i int) error {
		f := found[i]
		err := n.recordLoss(ctx, f)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Recording that a node is lost", "node", f.node.Name)
			n.book.SetLosing([]string{f.node.Name}, false)
			n.seen.queue.AddAfter(f.node.Name, retryNode)
			return err
		}
		now := n.clock.Now()
		metrics.NodesLost.WithLabelValues(string(f.verdict.Reason)).Inc()
		metrics.DetectionSeconds.Observe(began.Sub(f.verdict.Since).Seconds())
		metrics.DecisionSeconds.Observe(now.Sub(began).Seconds())
		tellNode(n.events, f.node.Name, corev1.EventTypeWarning, "Lost",
			"jobtree counts the node as lost until "+f.until()+": "+f.verdict.Message)
		return nil
	})
}

// until says what ends a loss.
func (f *finding) until() string {
	if f.verdict.Reason == nodeloss.Condition && !f.node.Spec.Unschedulable {
		return "this sign is gone, or somebody uncordons it"
	}
	return "somebody uncordons it"
}

// recordLoss cordons a node, with the reason in an annotation (R26), and notes whether the cordon is its own.
func (n *nodeJudge) recordLoss(ctx context.Context, f *finding) error {
	var cordoned any
	if !f.node.Spec.Unschedulable {
		cordoned = "true"
	}
	return patchNode(ctx, n.kube, f.node.Name, map[string]any{
		"metadata": map[string]any{"uid": f.node.UID, "annotations": map[string]any{
			rqv1.AnnotationLost: nodeloss.Record(f.verdict, n.clock.Now()), rqv1.AnnotationCordoned: cordoned}},
		"spec": map[string]any{"unschedulable": true},
	})
}

// noRecord has no record of a loss be left on a node.
var noRecord = map[string]any{rqv1.AnnotationLost: nil, rqv1.AnnotationCordoned: nil}

// tidyNodes removes the records of nodes that somebody has uncordoned.
func (n *nodeJudge) tidyNodes(ctx context.Context, names []string) {
	for _, name := range names {
		n.seen.mu.Lock()
		node := n.seen.forgiven[name]
		n.seen.mu.Unlock()
		if node == nil {
			continue
		}
		err := patchNode(ctx, n.kube, node.Name, map[string]any{"metadata": map[string]any{
			"uid": node.UID, "resourceVersion": node.ResourceVersion, "annotations": noRecord}})
		if err = ignore(err, apierrors.IsConflict); err != nil {
			klog.FromContext(ctx).V(2).Info("Retrying to remove the record of an uncordoned node", "node", name, "err",
				err)
			n.seen.queue.AddAfter(name, retryNode)
		}
	}
}
