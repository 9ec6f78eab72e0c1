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
	// heldBackPeriod is how often nodes are looked at whose loss is held back, and marksAtOnce how many of them are
	// written each time: when thousands show a sign the API server may be what ails.
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
	return fmt.Sprintf("%d of %d nodes with GPUs show signs of loss at once, more than the %d that nodeLossLimit allows",
		s.shown, s.nodes, s.limit)
}

// countSigns looks at all nodes with GPUs, whether they hold anything or not.
func (n *nodes) countSigns(now time.Time) signs {
	rules := n.rules()
	n.seen.mu.Lock()
	defer n.seen.mu.Unlock()
	since := n.heardSince(now)
	s := signs{nodes: len(n.seen.gpus), limit: n.args.NodesAtOnce(len(n.seen.gpus))}
	for name := range n.seen.gpus {
		if sight := n.seen.sights[name]; sight != nil && rules.Sign(sight, since, now) {
			s.shown++
		}
	}
	return s
}

// brake returns the suspects that may be taken for lost. The others are held back as long as too many nodes show a sign
// (R25).
func (n *nodes) brake(suspects []suspect, now time.Time) []suspect {
	certain := func(s suspect) bool { return s.verdict.Reason.Certain() }
	if !slices.ContainsFunc(suspects, func(s suspect) bool { return !certain(s) }) || !n.countSigns(now).tooMany() {
		return suspects
	}
	var free []suspect
	n.seen.mu.Lock()
	for _, s := range suspects {
		if certain(s) {
			free = append(free, s)
		} else if _, known := n.seen.heldBack[s.name]; !known {
			n.seen.heldBack[s.name] = s.verdict
		}
	}
	n.seen.mu.Unlock()
	n.applyHeldBack()
	return free
}

// brakeAgain is brake for what has been confirmed: more nodes may show a sign by now.
func (n *nodes) brakeAgain(found []*finding) []*finding {
	suspects := make([]suspect, len(found))
	for i, f := range found {
		suspects[i] = suspect{f.node.Name, f.verdict}
	}
	free := map[string]bool{}
	for _, s := range n.brake(suspects, n.clock.Now()) {
		free[s.name] = true
	}
	return slices.DeleteFunc(found, func(f *finding) bool { return !free[f.node.Name] })
}

// applyHeldBack has the book know which nodes are held back.
func (n *nodes) applyHeldBack() {
	names := map[string]bool{}
	n.seen.mu.Lock()
	for name := range n.seen.heldBack {
		names[name] = true
	}
	n.seen.mu.Unlock()
	n.book.HoldBack(names)
	metrics.NodesHeldBack.Set(float64(len(names)))
}

// watchHeldBack keeps those nodes held back that are to be, and tells of them, until the context ends.
func (n *nodes) watchHeldBack(ctx context.Context) {
	logger := klog.FromContext(ctx)
	told := time.Time{}
	every(ctx, n.clock, heldBackPeriod, func() {
		now := n.clock.Now()
		if s, held := n.reviewHeldBack(now); held == 0 {
			told = time.Time{}
		} else if now.Sub(told) >= alarmPeriod {
			told = now
			logger.Error(nil, "Nodes that show signs of loss are not taken for lost, since too many do at once", "heldBack",
				held, "signs", s.String())
		}
		n.markHeldBack(ctx, now)
	})
}

// reviewHeldBack gives those nodes up that are not to be held back any more: too few show a sign by now, and all of
// them are judged again, or a node's own sign has gone. While the API server does not answer nothing changes.
func (n *nodes) reviewHeldBack(now time.Time) (signs, int) {
	n.seen.mu.Lock()
	held := slices.Sorted(maps.Keys(n.seen.heldBack))
	_, contact := n.seen.inContact(n.args.NodeLossGrace.Duration/4, now)
	n.seen.mu.Unlock()
	if len(held) == 0 || !contact {
		return signs{}, len(held)
	}
	count := n.countSigns(now)
	left := 0
	for _, name := range held {
		verdict := n.verdict(name, now)
		if count.tooMany() && verdict.Lost && !verdict.Reason.Certain() && !n.book.Recorded(name) {
			left++
			continue
		}
		n.seen.mu.Lock()
		delete(n.seen.heldBack, name)
		n.seen.mu.Unlock()
		n.seen.queue.Add(name)
	}
	if left < len(held) {
		n.applyHeldBack()
	}
	return count, left
}

// markHeldBack writes on nodes that their loss is held back, and takes it off others once that is certain: after a
// restart nobody has been silent for long enough.
func (n *nodes) markHeldBack(ctx context.Context, now time.Time) {
	marks := map[string]*nodeloss.Verdict{}
	n.seen.mu.Lock()
	for name, verdict := range n.seen.heldBack {
		if !n.seen.marked[name] && len(marks) < marksAtOnce {
			marks[name] = &verdict
		}
	}
	certain := now.Sub(n.heardSince(now)) >= n.args.NodeLossGrace.Duration
	for name := range n.seen.marked {
		if _, held := n.seen.heldBack[name]; !held && certain && len(marks) < marksAtOnce {
			marks[name] = nil
		}
	}
	n.seen.mu.Unlock()
	if len(marks) == 0 {
		return
	}
	count := n.countSigns(now)
	names := slices.Sorted(maps.Keys(marks))
	err := inParallel(len(names), func(i int) error { return n.markNode(ctx, names[i], marks[names[i]], count, now) })
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Nodes are to be marked again whose loss is held back, or not any more", "err", err)
	}
}

// markNode writes on one node that its loss is held back, and makes an event of it; nil takes it off.
func (n *nodes) markNode(ctx context.Context, name string, verdict *nodeloss.Verdict, count signs,
	now time.Time) error {
	node := &corev1.Node{}
	node.Name = name
	var mark any
	if verdict != nil {
		mark = nodeloss.Record(*verdict, now)
	}
	annotations := map[string]any{rqv1.AnnotationHeldBack: mark}
	err := n.patchNode(ctx, node, map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return err
	}
	if verdict != nil {
		tellNode(n.events, name, corev1.EventTypeWarning, "HeldBack",
			fmt.Sprintf("%s, but %s: none of them is taken for lost. If this one is gone, say so: "+
				"kubectl runs nodes lost %s", verdict.Message, count, name))
	}
	n.seen.mu.Lock()
	defer n.seen.mu.Unlock()
	if delete(n.seen.marked, name); verdict != nil {
		n.seen.marked[name] = true
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
