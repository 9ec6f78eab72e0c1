package controllers

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/reconcile"
)

// evidence asks the API server itself.
type evidence struct {
	client client.Client
	kube   kubernetes.Interface
	gone   *endedPods
}

// Ask answers each question by one request.
func (e evidence) Ask(ctx context.Context, questions []reconcile.Question) ([]bool, error) {
	answers := make([]bool, len(questions))
	return answers, inParallel(len(questions), func(i int) (err error) {
		answers[i], err = e.ask(ctx, &questions[i])
		return err
	})
}

func (e evidence) ask(ctx context.Context, q *reconcile.Question) (bool, error) {
	switch q.If {
	case lifecycle.NodeLost, lifecycle.NodeStands:
		node, err := e.kube.CoreV1().Nodes().Get(ctx, q.Node, metav1.GetOptions{})
		if err != nil {
			return q.If == lifecycle.NodeLost && apierrors.IsNotFound(err), ignore(err, apierrors.IsNotFound)
		}
		_, lost := nodeloss.Recorded(node)
		if q.If == lifecycle.NodeLost {
			return lost, nil
		}
		_, _, out := nodeloss.Rules{}.Evident(node)
		return !lost && !out, nil
	case lifecycle.Unpaid:
		for name := q.Lease; ; {
			lease := &rqv1.Lease{}
			err := e.client.Get(ctx, name, lease)
			if err != nil || lease.Status.ClosureReason != rqv1.ClosedRepaid {
				return apierrors.IsNotFound(err) || err == nil && lease.Status.Closed, ignore(err, apierrors.IsNotFound)
			}
			name.Name = rank.NextLeaseName(name.Name, lease.Spec.Repaid != nil) // by which the pod goes on
		}
	case lifecycle.Unbound:
		pod, err := e.kube.CoreV1().Pods(q.Pod.Namespace).Get(ctx, q.Pod.Name, metav1.GetOptions{})
		if err != nil {
			return apierrors.IsNotFound(err), ignore(err, apierrors.IsNotFound)
		}
		run, _ := rank.RunOf(pod)
		return run != q.UID || pod.Spec.NodeName == "", nil
	case lifecycle.RunGone:
		run := &rqv1.Run{}
		switch err := e.client.Get(ctx, q.Run, run); {
		case apierrors.IsNotFound(err):
			return true, nil
		case err != nil:
			return false, fmt.Errorf("asking whether Run %s is gone: %w", q.Run, err)
		}
		return run.UID != q.UID, nil // one of its name was made later
	}
	return false, fmt.Errorf("no such evidence: %s", q.If)
}

// Alive returns the pods of a Run that hold GPUs, as the API server has them. It need not be asked when it has told
// of the end of all those that the cache lacks.
func (e evidence) Alive(ctx context.Context, run types.NamespacedName, unseen []types.UID) (map[types.UID]bool, error) {
	if !slices.ContainsFunc(unseen, func(pod types.UID) bool { return !e.gone.has(run, pod) }) {
		return nil, nil
	}
	pods, err := e.kube.CoreV1().Pods(run.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.Set{rqv1.LabelRun: run.Name}.String(),
	})
	if err != nil {
		return nil, fmt.Errorf("listing pods of Run %s: %w", run, err)
	}
	alive := map[types.UID]bool{}
	for i := range pods.Items {
		if !rank.Ended(&pods.Items[i]) {
			alive[pods.Items[i].UID] = true
		}
	}
	return alive, nil
}

// RankLeases reads the labels of the Leases of some ranks from the ledger.
func (e evidence) RankLeases(ctx context.Context, run *rqv1.Run, ranks []string) ([]map[string]string, error) {
	of, err := labels.NewRequirement(rqv1.LabelIndex, selection.In, ranks)
	if err != nil {
		return nil, fmt.Errorf("selecting the Leases of ranks %v: %w", ranks, err)
	}
	leases := &metav1.PartialObjectMetadataList{}
	leases.SetGroupVersionKind(rqv1.GroupVersion.WithKind("LeaseList"))
	all := labels.SelectorFromSet(labels.Set{rqv1.LabelRun: run.Name, rqv1.LabelRole: reconcile.RankRole(run)})
	selector := client.MatchingLabelsSelector{Selector: all.Add(*of)}
	if err := e.client.List(ctx, leases, client.InNamespace(run.Namespace), selector); err != nil {
		return nil, fmt.Errorf("counting the epochs of ranks: %w", err)
	}
	out := make([]map[string]string, len(leases.Items))
	for i := range leases.Items {
		out[i] = leases.Items[i].Labels
	}
	return out, nil
}
