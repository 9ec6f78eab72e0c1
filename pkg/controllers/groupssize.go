package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/group"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// resize has the Run of a group that has started ask for as many pods as the group has by now (R23, R42): those of
// them that may pay, and that nothing else holds back. More pods than there were are spending anew, so that it is
// asked again who may. It reports whether the Run asked for others. A scheduler that may not write that leaves the Run
// as it is.
func (g *groups) resize(ctx context.Context, run *rqv1.Run, v *view) (bool, error) {
	if !v.started || v.problem != "" || v.end != "" || run.Status.Phase != rqv1.RunRunning && holdsAny(v.members) {
		return false, nil
	}
	o := *v.Observed
	waiting := slices.DeleteFunc(slices.Clone(v.waiting), gated)
	o.Pods = slices.Concat(waiting, v.members)
	to := group.Resized(run, &o, v.members)
	if to != nil && to.Wider(run) {
		who, err := g.whoMayPay(ctx, waiting, run.Spec.Owner)
		if err != nil {
			return false, err
		}
		v.mayNotGrow = who
		waiting = slices.DeleteFunc(waiting, func(pod *corev1.Pod) bool { return who[group.AccountOf(pod)] != "" })
		o.Pods = slices.Concat(waiting, v.members)
		to = group.Resized(run, &o, v.members)
	}
	if to == nil {
		return false, nil
	}
	var malleable map[string]any
	if m := to.Malleable; m != nil {
		malleable = map[string]any{"minTotalGPUs": m.MinTotalGPUs, "maxTotalGPUs": m.MaxTotalGPUs,
			"stepGPUs": m.StepGPUs, "desiredTotalGPUs": m.DesiredTotalGPUs}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": run.UID},
		"spec": map[string]any{"resources": map[string]any{"totalGPUs": to.TotalGPUs}, "malleable": malleable,
			"pods": map[string]any{"ranks": to.Ranks}}})
	if err != nil {
		return false, fmt.Errorf("the width of %s: %w", v.Key, err)
	}
	is := &rqv1.Run{}
	is.Namespace, is.Name = run.Namespace, run.Name
	err = g.client.Patch(ctx, is, client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		klog.FromContext(ctx).Error(err, "A Run could not be resized to its group", "group", v.Key)
		return false, nil
	}
	return err == nil, ignore(err, apierrors.IsNotFound, apierrors.IsConflict)
}

// untaken reports whether a Run says that the API server does not let pods of its group get their ranks.
func untaken(run *rqv1.Run) bool {
	if run.Status.Phase == rqv1.RunRunning {
		is := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionStarted)
		return is != nil && is.Reason == string(plan.NotCreated)
	}
	r := run.Status.Refusal
	return run.Status.Phase == rqv1.RunPending && r != nil && r.Reason == string(plan.NotCreated)
}

// tellRest tells those pods that wait beside all that a running Run has places for, and the first of a Run that cannot
// have any. Where that may pass soon, they are told once it has had the time. It returns when to look again; 0 for not
// at all. The others are left waiting.
func (g *groups) tellRest(run *rqv1.Run, v *view, resized bool) (again time.Duration) {
	first := g.firstTold(v.waiting)
	why, reason, told := "", lifecycle.ReasonNotServed, false
	all := run.Status.Phase != rqv1.RunPending || untaken(run)
	switch {
	case first < 0:
	case untaken(run):
		why, reason, told = run.Status.Message, lifecycle.ReasonNotItsTurn, true
	case run.Status.Phase == rqv1.RunRunning:
		full := group.Full(run, v.members)
		why, reason, told = full, lifecycle.ReasonNotItsTurn, full != "" && !resized
		if !told {
			why, reason = group.Beyond(run), lifecycle.GrowsFor(run)
		}
	case run.Status.Phase == rqv1.RunPending && len(v.members) == 0:
		why, reason = run.Status.Message, lifecycle.WaitsFor(run)
	case run.Status.Phase == rqv1.RunPending && !v.started: // it is not read anew with those that wait
		o := *v.Observed
		o.Pods = slices.Concat(v.waiting, v.members)
		why = group.DeriveNew(&o).Problem
	}
	if !told && !g.lacks(v.Key, why) {
		if why == "" {
			return 0
		}
		return groupRest
	}
	var left []*corev1.Pod
	for i, pod := range v.waiting {
		if !g.asksForGPUs(pod) || !all && i != first {
			left = append(left, pod)
			continue
		}
		if refused := v.mayNotGrow[group.AccountOf(pod)]; refused != "" {
			g.refuse(lifecycle.ReasonNotServed, refused, pod)
			continue
		}
		g.refuse(reason, why, pod)
	}
	v.waiting = left
	return 0
}
