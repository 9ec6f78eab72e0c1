package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
)

// retryNode is how long until a node is looked at again whose loss could not be found out or recorded.
const retryNode = time.Second

// watchNodes judges the nodes that hold Leases, until the context ends: when something is seen of them, and when they have
// been silent for too long. Nodes that are due at the same time are judged, and lost, together.
func (c *Controllers) watchNodes(ctx context.Context) {
	defer c.nodes.queue.ShutDown()
	go func() {
		<-ctx.Done()
		c.nodes.queue.ShutDown()
	}()
	for {
		first, shutdown := c.nodes.queue.Get()
		if shutdown {
			return
		}
		<-c.clock.After(settle)
		due := []string{first}
		for c.nodes.queue.Len() > 0 {
			name, _ := c.nodes.queue.Get()
			due = append(due, name)
		}
		slices.Sort(due)
		c.judge(ctx, due)
		for _, name := range due {
			c.nodes.queue.Done(name)
		}
	}
}

// finding is a node with the evidence against it.
type finding struct {
	node    *corev1.Node
	verdict nodeloss.Verdict
}

// judge looks at nodes together, and records those that are lost.
func (c *Controllers) judge(ctx context.Context, names []string) {
	if !c.holds() { // the book takes nothing for lost that cannot be recorded
		for _, name := range names {
			c.nodes.queue.AddAfter(name, retryNode)
		}
		return
	}
	began := c.clock.Now()
	c.tidyNodes(ctx, names)
	var suspects []suspect
	for _, name := range names {
		if verdict, yes := c.suspected(name, began); yes {
			suspects = append(suspects, suspect{name, verdict})
		}
	}
	if suspects = c.brake(suspects, began); len(suspects) == 0 {
		return
	}
	found := make([]*finding, len(suspects))
	if err := inParallel(len(suspects), func(i int) (err error) {
		found[i], err = c.confirm(ctx, suspects[i].name)
		return err
	}); err != nil {
		klog.FromContext(ctx).V(2).Info("Nodes are to be judged again", "err", err)
	}
	found = slices.DeleteFunc(found, func(f *finding) bool { return f == nil })
	c.lose(ctx, c.brakeAgain(found), began)
}

// suspected reports whether what has been seen of a node that holds Leases is evidence that it is lost. If it is going to be,
// the node is looked at then.
func (c *Controllers) suspected(name string, now time.Time) (nodeloss.Verdict, bool) {
	holding, err := c.watches.leases.GetIndexer().IndexKeys(byNode, name)
	verdict := c.verdict(name, now)
	switch {
	case verdict.Reason == nodeloss.Deleted:
		if c.nodes.forget(name); len(holding) > 0 {
			metrics.NodesLost.WithLabelValues(string(verdict.Reason)).Inc() // the book knows: there is nothing to record it on
		}
	case err != nil || len(holding) == 0: // looked at again once it holds something
	case verdict.Lost && !c.book.Recorded(name):
		return verdict, true
	case !verdict.Lost && !verdict.Again.IsZero():
		c.nodes.queue.AddAfter(name, verdict.Again.Sub(now)+settle)
	}
	return nodeloss.Verdict{}, false
}

// verdict judges a node by what has been seen of it.
func (c *Controllers) verdict(name string, now time.Time) nodeloss.Verdict {
	c.nodes.mu.Lock()
	defer c.nodes.mu.Unlock()
	s := c.nodes.sights[name]
	if s == nil {
		return nodeloss.Verdict{}
	}
	return c.rules().Judge(s, c.heardSince(now), now)
}

// heardSince returns since when the API server has answered: nothing is silence while nobody listens. The watch's lock is held.
func (c *Controllers) heardSince(now time.Time) time.Time {
	since, ok := c.nodes.inContact(c.args.NodeLossGrace.Duration/4, now)
	if !ok {
		return now
	}
	return since
}

func (c *Controllers) rules() nodeloss.Rules {
	return nodeloss.Rules{Grace: c.args.NodeLossGrace.Duration, Conditions: c.args.NodeLossConditions}
}

// confirm judges a node anew by what the API server itself says: a cache may be behind. It returns nil for one that is not
// lost after all.
func (c *Controllers) confirm(ctx context.Context, name string) (*finding, error) {
	node, err := c.kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil // its deletion is on its way
	}
	if err == nil {
		c.nodes.see(node, c.clock.Now())
		err = c.listen(ctx, node)
	}
	if err != nil {
		c.nodes.queue.AddAfter(name, retryNode)
		return nil, fmt.Errorf("confirming that node %s is lost: %w", name, err)
	}
	now := c.clock.Now()
	verdict := c.verdict(name, now)
	if _, recorded := nodeloss.Recorded(node); recorded {
		return nil, nil // the record is on its way
	}
	if !verdict.Lost {
		if !verdict.Again.IsZero() {
			c.nodes.queue.AddAfter(name, verdict.Again.Sub(now)+settle)
		}
		return nil, nil
	}
	return &finding{node, verdict}, nil
}

// listen notes when the kubelet was heard last. That does not matter for a node that says of itself that it is lost.
func (c *Controllers) listen(ctx context.Context, node *corev1.Node) error {
	if _, _, evident := c.rules().Evident(node); evident {
		return nil
	}
	lease, err := c.kube.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, node.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && lease.Spec.RenewTime == nil:
		c.nodes.removeHeartbeat(node.Name)
		return nil
	case err == nil:
		c.nodes.setHeartbeat(lease, c.clock.Now())
	}
	return err
}

// lose records nodes as lost, all of them before anything is done about any.
func (c *Controllers) lose(ctx context.Context, found []*finding, began time.Time) {
	if len(found) == 0 {
		return
	}
	var names []string
	for _, f := range found {
		names = append(names, f.node.Name)
	}
	c.book.Lose(names)
	_ = inParallel(len(found), func(i int) error {
		f := found[i]
		err := c.recordLoss(ctx, f)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Recording that a node is lost", "node", f.node.Name)
			c.book.Keep([]string{f.node.Name})
			c.nodes.queue.AddAfter(f.node.Name, retryNode)
			return err
		}
		now := c.clock.Now()
		metrics.NodesLost.WithLabelValues(string(f.verdict.Reason)).Inc()
		metrics.DetectionSeconds.Observe(began.Sub(f.verdict.Since).Seconds())
		metrics.DecisionSeconds.Observe(now.Sub(began).Seconds())
		c.tellNode(f.node.Name, corev1.EventTypeWarning, "Lost", "jobtree counts the node as lost until somebody uncordons it: "+f.verdict.Message)
		return nil
	})
}

// recordLoss cordons a node, with the reason in an annotation (R26).
func (c *Controllers) recordLoss(ctx context.Context, f *finding) error {
	return c.patchNode(ctx, f.node, map[string]any{
		"metadata": map[string]any{"uid": f.node.UID, "annotations": map[string]any{rqv1.AnnotationLost: nodeloss.Record(f.verdict, c.clock.Now())}},
		"spec":     map[string]any{"unschedulable": true},
	})
}

// tidyNodes removes the records of nodes that a person has uncordoned.
func (c *Controllers) tidyNodes(ctx context.Context, names []string) {
	for _, name := range names {
		c.nodes.mu.Lock()
		node := c.nodes.forgiven[name]
		c.nodes.mu.Unlock()
		if node == nil {
			continue
		}
		err := c.patchNode(ctx, node, map[string]any{"metadata": map[string]any{
			"uid": node.UID, "resourceVersion": node.ResourceVersion, "annotations": map[string]any{rqv1.AnnotationLost: nil}}})
		if err = ignore(err, apierrors.IsConflict); err != nil {
			klog.FromContext(ctx).V(2).Info("The record of a node that was uncordoned is to be removed", "node", name, "err", err)
			c.nodes.queue.AddAfter(name, retryNode)
		}
	}
}

func (c *Controllers) patchNode(ctx context.Context, node *corev1.Node, change map[string]any) error {
	patch, err := json.Marshal(change)
	if err == nil {
		_, err = c.kube.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	return ignore(err, apierrors.IsNotFound)
}

// tellNode makes an event on a node.
func (c *Controllers) tellNode(name, kind, reason, message string) {
	about := &corev1.Node{}
	about.APIVersion, about.Kind, about.Name, about.UID = "v1", "Node", name, types.UID(name)
	c.events.Eventf(about, nil, kind, reason, "Schedule", "%s", message)
}
