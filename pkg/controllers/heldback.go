package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
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

// lossLimit holds nodes back from being taken for lost while too many show a sign of it.
type lossLimit struct {
	book   *book.Book
	kube   kubernetes.Interface
	events events.EventRecorder
	clock  clock.Clock
	seen   *nodeWatch
}

// free returns the suspects that may be taken for lost. While too many nodes show a sign the others are held back;
// while more than a few do, evidence that is young waits for what the others show (R25).
func (l *lossLimit) free(suspects []suspect, now time.Time) (free []suspect) {
	if !slices.ContainsFunc(suspects, func(s suspect) bool { return !s.verdict.Reason.Certain() }) {
		return suspects
	}
	count := l.seen.countSigns(now)
	for _, s := range suspects {
		switch count.Treat(s.verdict) {
		case nodeloss.Lose:
			free = append(free, s)
		case nodeloss.HoldBack:
			l.seen.holdBack(s)
		case nodeloss.Wait:
			l.seen.queue.AddAfter(s.name, s.verdict.Again.Sub(now)+debounce)
		}
	}
	if count.TooMany() {
		l.apply()
	}
	return free
}

// apply has the book know which nodes are held back. The lock is held throughout, so that what is known last stays.
func (l *lossLimit) apply() {
	l.seen.mu.Lock()
	defer l.seen.mu.Unlock()
	names := map[string]bool{}
	for name := range l.seen.heldBack {
		names[name] = true
	}
	l.book.HoldBack(names)
	metrics.NodesHeldBack.Set(float64(len(names)))
}

// watch keeps those nodes held back that are to be, and tells of them, until the context ends.
func (l *lossLimit) watch(ctx context.Context) {
	logger := klog.FromContext(ctx)
	told := time.Time{}
	every(ctx, l.clock, heldBackPeriod, func() {
		now := l.clock.Now()
		if s, held := l.review(now); held == 0 {
			told = time.Time{}
		} else if now.Sub(told) >= alarmPeriod {
			told = now
			logger.Error(nil, "Nodes that show signs of loss are not treated as lost, because too many do at once", "heldBack",
				held, "signs", s.Say())
		}
		l.mark(ctx, now)
	})
}

// review gives those nodes up that are not to be held back any more: too few show a sign by now, and all of them are
// judged again, or a node's own sign has gone. While the API server does not answer nothing changes.
func (l *lossLimit) review(now time.Time) (nodeloss.Signs, int) {
	l.seen.mu.Lock()
	held := slices.Sorted(maps.Keys(l.seen.heldBack))
	l.seen.mu.Unlock()
	if _, answers := l.seen.contact.held(now); len(held) == 0 || !answers {
		return nodeloss.Signs{}, len(held)
	}
	count := l.seen.countSigns(now)
	left := 0
	for _, name := range held {
		verdict := l.seen.verdict(name, now)
		if count.TooMany() && verdict.Lost && !verdict.Reason.Certain() && !l.book.Recorded(name) {
			left++
			continue
		}
		l.seen.mu.Lock()
		delete(l.seen.heldBack, name)
		l.seen.mu.Unlock()
		l.seen.queue.Add(name)
	}
	if left < len(held) {
		l.apply()
	}
	return count, left
}

// mark writes on nodes that their loss is held back, and takes it off others once that is certain: after a restart
// nobody has been silent for long enough.
func (l *lossLimit) mark(ctx context.Context, now time.Time) {
	marks := map[string]*nodeloss.Verdict{}
	l.seen.mu.Lock()
	for name, verdict := range l.seen.heldBack {
		if !l.seen.marked[name] && len(marks) < marksAtOnce {
			marks[name] = &verdict
		}
	}
	certain := now.Sub(l.seen.heardSince(now)) >= l.seen.args.NodeLossGrace.Duration
	for name := range l.seen.marked {
		if _, held := l.seen.heldBack[name]; !held && certain && len(marks) < marksAtOnce {
			marks[name] = nil
		}
	}
	l.seen.mu.Unlock()
	if len(marks) == 0 {
		return
	}
	count := l.seen.countSigns(now)
	names := slices.Sorted(maps.Keys(marks))
	err := inParallel(len(names), func(i int) error { return l.markNode(ctx, names[i], marks[names[i]], count, now) })
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Retrying to mark nodes whose loss is held back, or no longer is", "err", err)
	}
}

// markNode writes on one node that its loss is held back, and makes an event of it; nil takes it off.
func (l *lossLimit) markNode(ctx context.Context, name string, verdict *nodeloss.Verdict, count nodeloss.Signs,
	now time.Time) error {
	var mark any
	if verdict != nil {
		mark = nodeloss.Record(*verdict, now)
	}
	annotations := map[string]any{rqv1.AnnotationHeldBack: mark}
	err := patchNode(ctx, l.kube, name, map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return err
	}
	if verdict != nil {
		tellNode(l.events, name, corev1.EventTypeWarning, "HeldBack",
			fmt.Sprintf("%s, but %s: jobtree treats none of them as lost. If this node is really gone, run: kubectl runs "+
				"nodes lost %s", verdict.Message, count.Say(), name))
	}
	l.seen.mu.Lock()
	defer l.seen.mu.Unlock()
	if delete(l.seen.marked, name); verdict != nil {
		l.seen.marked[name] = true
	}
	return nil
}
