package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/group"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
)

// report has the object of a group say whether the group has been scheduled, if its kind does (R43): by the Run that
// stands for it, or by why there is none. A scheduler that may not write it schedules all the same.
func (g *groups) report(ctx context.Context, o *group.Observed, run *rqv1.Run, why string) error {
	if o.Object == nil || !group.Reports(o.Key) {
		return nil
	}
	conditions := group.Scheduled(o.Object, run, why, g.clock.Now())
	if conditions == nil {
		return nil
	}
	was := &unstructured.Unstructured{Object: o.Object}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": was.GetUID(), "resourceVersion": was.GetResourceVersion()},
		"status":   map[string]any{"conditions": conditions}})
	if err != nil {
		return fmt.Errorf("conditions of %s: %w", o.Key, err)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(was.GroupVersionKind())
	object.SetNamespace(was.GetNamespace())
	object.SetName(was.GetName())
	err = g.client.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
	switch {
	case apierrors.IsForbidden(err):
		klog.FromContext(ctx).V(2).Info("The conditions of a group's object could not be written", "group", o.Key, "err", err)
		return nil
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("conditions of %s: %w", o.Key, err)
	}
	return nil
}

// look brings a group a step further, and tells its pods. It returns when to look again without an event; 0 for never.
func (g *groups) look(ctx context.Context, key group.Key) (time.Duration, error) {
	again, err := g.lookAt(ctx, key)
	soon, untold := g.tellRefused(ctx, key)
	return lifecycle.Soonest(again, soon), errors.Join(err, untold)
}

// refuse has pods be held back, and be told why when their group has been looked at.
func (g *groups) refuse(reason, why string, pods ...*corev1.Pod) {
	g.decide(pods, book.Stranger{Refused: why, Reason: reason})
}

// tellRefused tells the pods of a group that wait and are refused why, by their condition (R43) and an event, unless
// they wait for another's gate. It returns when there is more to tell; 0 for never.
func (g *groups) tellRefused(ctx context.Context, key group.Key) (time.Duration, error) {
	waiting, _, err := g.podsOf(key, nil)
	if err != nil {
		return 0, err
	}
	words, after := lifecycle.TurnedAway(slices.DeleteFunc(waiting, gated), func(pod *corev1.Pod) (reason, why string) {
		return g.book.RefusedFor(pod.UID)
	}, g.clock.Now())
	taken, again, err := g.tell(ctx, words)
	for _, w := range taken {
		g.events.Eventf(w.Pod, nil, corev1.EventTypeWarning, "FailedScheduling", "Scheduling", "%s", w.Message)
	}
	return lifecycle.Soonest(after, again), err
}

// tellAll tells all pods of a group that wait why no Run stands for it, the first with an event, unless they wait for
// another's gate. Where the group waits for more pods, nothing is wrong with the others. It returns when there is more
// to tell; 0 for never.
func (g *groups) tellAll(ctx context.Context, waiting []*corev1.Pod, why string, waits bool) (time.Duration, error) {
	first, reason := max(0, g.firstTold(waiting)), lifecycle.ReasonNotServed
	if waits {
		reason = lifecycle.ReasonNotItsTurn
	}
	rest := slices.Delete(slices.Clone(waiting), first, first+1)
	g.refuse(reason, why, waiting[first])
	g.decide(rest, book.Stranger{})
	if waits {
		return g.retract(ctx, rest, nil, true)
	}
	words, after := lifecycle.NotServed(slices.DeleteFunc(rest, gated), why, g.clock.Now())
	_, again, err := g.tell(ctx, words)
	return lifecycle.Soonest(after, again), err
}

// firstTold returns which of the pods that wait is told why with an event: the first with GPUs, of those that wait for
// no gate, should there be any; -1 where none asks for GPUs.
func (g *groups) firstTold(waiting []*corev1.Pod) int {
	open := slices.IndexFunc(waiting, func(pod *corev1.Pod) bool { return g.asksForGPUs(pod) && !gated(pod) })
	if open >= 0 {
		return open
	}
	return slices.IndexFunc(waiting, g.asksForGPUs)
}

// retract has pods with GPUs that are held back say that they wait for their group to start, where they say what was
// wrong and is not any more, of their Run, if they have one, or of one that is gone for long: nobody else would. It
// returns when there is more to tell; 0 for never.
func (g *groups) retract(ctx context.Context, held []*corev1.Pod, run *rqv1.Run, goneForLong bool) (time.Duration,
	error) {
	held = slices.DeleteFunc(slices.Clone(held), func(pod *corev1.Pod) bool { return !g.asksForGPUs(pod) })
	words, after := lifecycle.NotItsTurn(held, run, goneForLong, g.clock.Now())
	_, again, err := g.tell(ctx, words)
	return lifecycle.Soonest(after, again), err
}

// tell tells pods something, and returns what has been taken, and when to look again at those that were not as they
// were read: no event of a pod that waits has its group be looked at. It is 0 for never.
func (g *groups) tell(ctx context.Context, words []lifecycle.Word) (taken []lifecycle.Word, again time.Duration,
	err error) {
	taken, stale, err := podWriter{kube: g.kube, clock: g.clock}.tellEach(ctx, words)
	if stale {
		again = lifecycle.ReasonRest
	}
	return taken, again, err
}

// misfits returns those pods that wait which fit into the Run that stands for the group, and why the others do not. A
// Run that has not started, and has no pods, is made anew as those say that wait.
func (g *groups) misfits(key group.Key, run *rqv1.Run, waiting, members []*corev1.Pod) (left []*corev1.Pod,
	why map[*corev1.Pod]string) {
	g.mu.Lock()
	started := g.of(key).started
	g.mu.Unlock()
	if run == nil || !started && len(members) == 0 {
		return waiting, nil
	}
	why = map[*corev1.Pod]string{}
	for _, pod := range waiting {
		if misfit := g.misfit(run, pod); misfit != "" {
			why[pod] = misfit
			continue
		}
		left = append(left, pod)
	}
	return left, why
}

// haveCompleted reports whether all pods of a Run have, of which there are some.
func haveCompleted(members []*corev1.Pod) bool {
	return len(members) > 0 && !slices.ContainsFunc(members, func(pod *corev1.Pod) bool {
		return pod.Status.Phase != corev1.PodSucceeded
	})
}

// misfit says why a pod with GPUs cannot have a rank in the Run that stands for its group; empty where it can.
func (g *groups) misfit(run *rqv1.Run, pod *corev1.Pod) string {
	if !g.asksForGPUs(pod) {
		return ""
	}
	return group.Misfit(run, pod, g.rules.GPUs(&pod.Spec))
}

// lacks reports whether a group waits for pods to be made, and none has come for so long that it is to be told: a large
// group's come one after the other.
func (g *groups) lacks(key group.Key, waits string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	of, now := g.of(key), g.clock.Now()
	if of.waits != waits {
		of.waits, of.lacking = waits, now
	}
	return waits != "" && now.Sub(of.lacking) >= groupRest
}
