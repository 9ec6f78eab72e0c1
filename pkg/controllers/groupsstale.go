package controllers

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/group"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// another reports whether a Run stands for another group than there is, of the same name: that one is gone, and its Run
// goes as well. A pod that has a rank in the Run is of it, whoever controls the pod by now.
func another(run *rqv1.Run, o *group.Observed) bool {
	is := ownersOf(o)
	if len(is) == 0 || len(run.OwnerReferences) == 0 {
		return false
	}
	if o.Object == nil {
		pod := o.Pods[0]
		of, ranked := rank.RunOf(pod)
		named := metav1.GetControllerOfNoCopy(pod)
		return !(ranked && of == run.UID) && !slices.ContainsFunc(run.OwnerReferences,
			func(was metav1.OwnerReference) bool {
				return was.UID == is[0].UID || was.UID == pod.UID || named != nil && was.UID == named.UID
			})
	}
	return slices.ContainsFunc(run.OwnerReferences, func(was metav1.OwnerReference) bool {
		return was.Kind == is[0].Kind && was.Name == is[0].Name && was.UID != is[0].UID
	})
}

// stale reports whether the Run of a group goes since another is to stand for the group. One that is outdated by pods
// which may not pay stays: none could be made, and others of the group are not to lose their place in line.
func (g *groups) stale(ctx context.Context, run *rqv1.Run, v *view) (bool, error) {
	if another(run, v.Observed) {
		return true, nil
	}
	if v.started || v.problem != "" || !outdated(run, v.Observed) {
		return false, nil
	}
	if d := group.DeriveNew(v.Observed); d.Spec == nil || d.Spec.Owner != run.Spec.Owner {
		return true, nil
	}
	refused, err := g.mayAllPay(ctx, v.waiting, run.Spec.Owner)
	return refused == "", err
}

// remake has a stale Run go: the event of that looks again, and makes the one that the group is to have.
func (g *groups) remake(ctx context.Context, run *rqv1.Run, v *view) (time.Duration, error) {
	if another(run, v.Observed) {
		return 0, g.deleteRun(ctx, run)
	}
	goes, err := g.withdraw(ctx, run, false)
	if !goes {
		return settles, err
	}
	return 0, err
}

// withdraw deletes a Run that waits, and reports whether it does. It does not if any of the Run's pods has a place by
// now, which the caches need not show yet: the pods would end. Nor does it where others make room for it, unless it is
// to go anyway.
func (g *groups) withdraw(ctx context.Context, run *rqv1.Run, anyway bool) (goes bool, err error) {
	if !g.book.Withdraw(run.UID, anyway) {
		return false, nil
	}
	err = g.client.Delete(ctx, run, client.Preconditions{UID: &run.UID, ResourceVersion: &run.ResourceVersion})
	if err != nil {
		g.book.Restore(run.UID)
	}
	return true, ignore(err, apierrors.IsNotFound)
}

// outdated reports whether a group that has not started is read otherwise than when its Run was made (R41): pods have
// come, or somebody has mended what it says.
func outdated(run *rqv1.Run, o *group.Observed) bool {
	was := run.Annotations[rqv1.AnnotationDerived]
	if was == "" || run.Ended() || run.Status.Phase == rqv1.RunRunning ||
		slices.ContainsFunc(o.Pods, func(pod *corev1.Pod) bool { return rank.Theirs(pod) && pod.Spec.NodeName != "" }) {
		return false
	}
	d := group.DeriveNew(o)
	if d.Spec == nil { // it is to have more pods than its Run is for, or lacks some of those
		return d.Waits != "" && group.Outnumbers(o, run)
	}
	return d.Hash() != was
}

// await has a Run go that has had no pods for as long as their places are kept (R42): there is nothing left that it
// stands for. That of a suspended group goes at once: its pods come no more before somebody resumes it. So does,
// after a moment, one whose controller asks for fewer pods. One that has ended stays as a record.
func (g *groups) await(ctx context.Context, run *rqv1.Run, v *view) (time.Duration, error) {
	if run.Ended() {
		return 0, nil
	}
	now := g.clock.Now()
	g.mu.Lock()
	of := g.of(v.Key)
	if of.empty.IsZero() {
		of.empty = now
	}
	left := of.empty.Add(g.deadline).Sub(now)
	g.mu.Unlock()
	if left > 0 && !v.left && group.Suspended(v.Object) == "" {
		if v.Maker != nil {
			left = min(left, settles)
		}
		return left, nil
	}
	return 0, g.deleteRun(ctx, run)
}

// deserted reports whether a Run that runs has no pods, and none that wait could have their ranks as they are: they may
// not pay, or something else is to happen first.
func (g *groups) deserted(run *rqv1.Run, v *view) bool {
	is := run.Status.Phase == rqv1.RunRunning && v.end == "" && len(v.members) == 0 &&
		!slices.ContainsFunc(v.waiting, func(pod *corev1.Pod) bool { return g.asksForGPUs(pod) && !gated(pod) })
	if !is {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.of(v.Key).empty = time.Time{}
	}
	return is
}
