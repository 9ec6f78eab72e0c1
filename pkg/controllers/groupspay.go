package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/group"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// pays reports whether a pod's service account has been found to be one that may spend as the owner of a Run.
func (p *pods) pays(run *rqv1.Run, pod *corev1.Pod) bool {
	return p.payersOf == run.UID && p.payers[group.AccountOf(pod)]
}

// mayJoin finds out whose pods may have ranks in the Run that stands for a group: of each service account it is asked
// whether it may spend as the Run's owner, since pods of several may name one group. It returns why those may not that
// may not. Of one with pods in a Run that runs nobody is asked again: what replaces them comes from the same (R41). A
// Run that waits goes when one that has pods in it may not any more; what is returned is nil then.
func (g *groups) mayJoin(ctx context.Context, key group.Key, run *rqv1.Run, waiting, members []*corev1.Pod) (
	map[string]string, error) {
	payers := map[string]bool{}
	if run.Status.Phase == rqv1.RunRunning {
		payers = g.payersOf(key, run, members)
	} else if !run.Ended() && !holdsAny(members) {
		refused, err := g.mayAllPay(ctx, members, run.Spec.Owner)
		if err != nil {
			return nil, err
		}
		if refused != "" {
			if goes, err := g.withdraw(ctx, run, true); goes {
				return nil, err
			}
			payers = g.payersOf(key, run, members) // it begins, with what was read
		}
	}
	var unknown []*corev1.Pod
	for _, pod := range waiting {
		if !payers[group.AccountOf(pod)] {
			unknown = append(unknown, pod)
		}
	}
	who, err := g.whoMayPay(ctx, unknown, run.Spec.Owner)
	if err != nil {
		return nil, err
	}
	for account, refused := range who {
		if refused == "" {
			payers[account] = true
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	of := g.of(key)
	of.payers, of.payersOf = payers, run.UID
	return who, nil
}

// payersOf returns the service accounts that have had pods in a Run that runs.
func (g *groups) payersOf(key group.Key, run *rqv1.Run, members []*corev1.Pod) map[string]bool {
	payers := map[string]bool{}
	g.mu.Lock()
	defer g.mu.Unlock()
	if of := g.of(key); of.payersOf == run.UID {
		maps.Copy(payers, of.payers)
	}
	for _, pod := range members {
		payers[group.AccountOf(pod)] = true
	}
	return payers
}

// holdsAny reports whether one of some pods has a node: a gang is on its way then.
func holdsAny(members []*corev1.Pod) bool {
	return slices.ContainsFunc(members, func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" && !rank.Ended(pod) })
}

// turnDown tells those pods that wait which get no rank in a Run: their service accounts may not pay, or it has ended.
// It returns the others.
func (g *groups) turnDown(run *rqv1.Run, waiting []*corev1.Pod, who map[string]string) (left []*corev1.Pod) {
	for _, pod := range waiting {
		why := ""
		if g.asksForGPUs(pod) {
			why = who[group.AccountOf(pod)]
			if key, _ := group.KeyOf(run); run.Ended() {
				why = hasEnded(key, run.Status.Phase)
			}
		}
		if why == "" {
			left = append(left, pod)
			continue
		}
		g.refuse(lifecycle.ReasonNotServed, why, pod)
	}
	return left
}

func hasEnded(key group.Key, end rqv1.RunPhase) string {
	return fmt.Sprintf("%s has ended (%s), and its pods are no longer started", key, end)
}
