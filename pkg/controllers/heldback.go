package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
)

const (
	// heldBackPeriod is how often nodes are looked at whose loss is held back, and marksAtOnce how many of them are written each
	// time: when thousands show a sign the API server may be what ails.
	heldBackPeriod = time.Second
	marksAtOnce    = 100
	// alarmPeriod is how often the log says that losses are held back.
	alarmPeriod = time.Minute
)

// suspect is a node with evidence against it that has not been confirmed.
type suspect struct {
	name    string
	verdict nodeloss.Verdict
}

// signs is how many of the nodes with GPUs show a sign of loss, and how many may (R25).
type signs struct{ shown, nodes, limit int }

func (s signs) tooMany() bool { return s.shown > s.limit }

func (s signs) String() string {
	return fmt.Sprintf("%d of %d nodes with GPUs show signs of loss at once, more than the %d that nodeLossLimit allows", s.shown, s.nodes, s.limit)
}

// countSigns looks at all nodes with GPUs, whether they hold anything or not.
func (c *Controllers) countSigns(now time.Time) signs {
	rules := c.rules()
	c.nodes.mu.Lock()
	defer c.nodes.mu.Unlock()
	since := c.heardSince(now)
	s := signs{nodes: len(c.nodes.gpus), limit: c.args.NodesAtOnce(len(c.nodes.gpus))}
	for name := range c.nodes.gpus {
		if sight := c.nodes.sights[name]; sight != nil && rules.Sign(sight, since, now) {
			s.shown++
		}
	}
	return s
}

// brake returns the suspects that may be taken for lost. The others are held back as long as too many nodes show a sign (R25).
func (c *Controllers) brake(suspects []suspect, now time.Time) []suspect {
	certain := func(s suspect) bool { return s.verdict.Reason.Certain() }
	if !slices.ContainsFunc(suspects, func(s suspect) bool { return !certain(s) }) || !c.countSigns(now).tooMany() {
		return suspects
	}
	var free []suspect
	c.nodes.mu.Lock()
	for _, s := range suspects {
		if certain(s) {
			free = append(free, s)
		} else if _, known := c.nodes.heldBack[s.name]; !known {
			c.nodes.heldBack[s.name] = s.verdict
		}
	}
	c.nodes.mu.Unlock()
	c.applyHeldBack()
	return free
}

// brakeAgain is brake for what has been confirmed: more nodes may show a sign by now.
func (c *Controllers) brakeAgain(found []*finding) []*finding {
	suspects := make([]suspect, len(found))
	for i, f := range found {
		suspects[i] = suspect{f.node.Name, f.verdict}
	}
	free := map[string]bool{}
	for _, s := range c.brake(suspects, c.clock.Now()) {
		free[s.name] = true
	}
	return slices.DeleteFunc(found, func(f *finding) bool { return !free[f.node.Name] })
}

// applyHeldBack has the book know which nodes are held back.
func (c *Controllers) applyHeldBack() {
	names := map[string]bool{}
	c.nodes.mu.Lock()
	for name := range c.nodes.heldBack {
		names[name] = true
	}
	c.nodes.mu.Unlock()
	c.book.HoldBack(names)
	metrics.NodesHeldBack.Set(float64(len(names)))
}

// watchHeldBack keeps those nodes held back that are to be, and tells of them, until the context ends.
func (c *Controllers) watchHeldBack(ctx context.Context) {
	logger := klog.FromContext(ctx)
	told := time.Time{}
	every(ctx, c.clock, heldBackPeriod, func() {
		now := c.clock.Now()
		if s, held := c.reviewHeldBack(now); held == 0 {
			told = time.Time{}
		} else if now.Sub(told) >= alarmPeriod {
			told = now
			logger.Error(nil, "Nodes that show signs of loss are not taken for lost, since too many do at once", "heldBack", held, "signs", s.String())
		}
		c.markHeldBack(ctx, now)
	})
}

// reviewHeldBack gives those nodes up that are not to be held back any more: too few show a sign by now, and all of them are
// judged again, or a node's own sign has gone. While the API server does not answer nothing changes.
func (c *Controllers) reviewHeldBack(now time.Time) (signs, int) {
	c.nodes.mu.Lock()
	held := slices.Sorted(maps.Keys(c.nodes.heldBack))
	_, contact := c.nodes.inContact(c.args.NodeLossGrace.Duration/4, now)
	c.nodes.mu.Unlock()
	if len(held) == 0 || !contact {
		return signs{}, len(held)
	}
	count := c.countSigns(now)
	left := 0
	for _, name := range held {
		verdict := c.verdict(name, now)
		if count.tooMany() && verdict.Lost && !verdict.Reason.Certain() && !c.book.Recorded(name) {
			left++
			continue
		}
		c.nodes.mu.Lock()
		delete(c.nodes.heldBack, name)
		c.nodes.mu.Unlock()
		c.nodes.queue.Add(name)
	}
	if left < len(held) {
		c.applyHeldBack()
	}
	return count, left
}

// markHeldBack writes on nodes that their loss is held back, and takes it off others once that is certain: after a restart
// nobody has been silent for long enough.
func (c *Controllers) markHeldBack(ctx context.Context, now time.Time) {
	marks := map[string]*nodeloss.Verdict{}
	c.nodes.mu.Lock()
	for name, verdict := range c.nodes.heldBack {
		if !c.nodes.marked[name] && len(marks) < marksAtOnce {
			marks[name] = &verdict
		}
	}
	certain := now.Sub(c.heardSince(now)) >= c.args.NodeLossGrace.Duration
	for name := range c.nodes.marked {
		if _, held := c.nodes.heldBack[name]; !held && certain && len(marks) < marksAtOnce {
			marks[name] = nil
		}
	}
	c.nodes.mu.Unlock()
	if len(marks) == 0 {
		return
	}
	count := c.countSigns(now)
	names := slices.Sorted(maps.Keys(marks))
	err := inParallel(len(names), func(i int) error { return c.markNode(ctx, names[i], marks[names[i]], count, now) })
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Nodes are to be marked again whose loss is held back, or not any more", "err", err)
	}
}

// markNode writes on one node that its loss is held back, and makes an event of it; nil takes it off.
func (c *Controllers) markNode(ctx context.Context, name string, verdict *nodeloss.Verdict, count signs, now time.Time) error {
	node := &corev1.Node{}
	node.Name = name
	var mark any
	if verdict != nil {
		mark = nodeloss.Record(*verdict, now)
	}
	if err := c.patchNode(ctx, node, map[string]any{"metadata": map[string]any{"annotations": map[string]any{rqv1.AnnotationHeldBack: mark}}}); err != nil {
		return err
	}
	if verdict != nil {
		c.tellNode(name, corev1.EventTypeWarning, "HeldBack", fmt.Sprintf("%s, but %s: none of them is taken for lost. If this one is gone, say so: "+
			"kubectl runs nodes lost %s", verdict.Message, count, name))
	}
	c.nodes.mu.Lock()
	defer c.nodes.mu.Unlock()
	if delete(c.nodes.marked, name); verdict != nil {
		c.nodes.marked[name] = true
	}
	return nil
}

// note remembers of a node whether it has GPUs and says that its loss is held back. The lock is held.
func (w *nodeWatch) note(node *corev1.Node, gpus corev1.ResourceName) {
	capacity, allocatable := node.Status.Capacity[gpus], node.Status.Allocatable[gpus]
	if !capacity.IsZero() || !allocatable.IsZero() {
		w.gpus[node.Name] = true
	}
	delete(w.marked, node.Name)
	if _, marked := node.Annotations[rqv1.AnnotationHeldBack]; marked {
		w.marked[node.Name] = true
	}
}
