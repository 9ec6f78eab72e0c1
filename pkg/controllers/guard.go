package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/reconcile"
)

// guards reads and writes the PodDisruptionBudgets of Runs (R35).
type guards struct {
	kube kubernetes.Interface
	seen cache.SharedIndexInformer
	// written are those that this process wrote last, by Run: a cache may not have them yet.
	written *sync.Map
}

// byGuarded indexes PodDisruptionBudgets by the Run that they were made for; those of others by their namespace.
const byGuarded = "guarded"

// guardsOf watches PodDisruptionBudgets.
func guardsOf(kube kubernetes.Interface) cache.SharedIndexInformer {
	seen := informers.NewSharedInformerFactory(kube, 0).Policy().V1().PodDisruptionBudgets().Informer()
	err := seen.AddIndexers(cache.Indexers{byGuarded: func(o any) ([]string, error) {
		return []string{guardedBy(o.(*policyv1.PodDisruptionBudget)).String()}, nil
	}})
	if err != nil {
		panic(err) // nothing has started yet
	}
	return seen
}

// guardedBy returns the Run that a PodDisruptionBudget was made for; one without a name for somebody's own.
func guardedBy(b *policyv1.PodDisruptionBudget) types.NamespacedName {
	if _, ours := rank.RunOf(b); ours {
		return types.NamespacedName{Namespace: b.Namespace, Name: b.Labels[rqv1.LabelRun]}
	}
	return types.NamespacedName{Namespace: b.Namespace}
}

// of returns the PodDisruptionBudgets that are a Run's or may select its pods, the Run's as it was written last.
func (g *guards) of(run types.NamespacedName) ([]*policyv1.PodDisruptionBudget, error) {
	var out []*policyv1.PodDisruptionBudget
	own := false
	for _, key := range []types.NamespacedName{run, {Namespace: run.Namespace}} {
		objects, err := g.seen.GetIndexer().ByIndex(byGuarded, key.String())
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			b := o.(*policyv1.PodDisruptionBudget)
			if b.Name == run.Name {
				own, b = true, g.latest(run, b)
			}
			out = append(out, b)
		}
	}
	if last, ok := g.written.Load(run); ok && !own {
		out = append(out, last.(*policyv1.PodDisruptionBudget))
	}
	return out, nil
}

// latest returns what was written last of one that a cache has. What the cache has by then need not be remembered.
func (g *guards) latest(run types.NamespacedName, b *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	last, ok := g.written.Load(run)
	if !ok {
		return b
	}
	if w := last.(*policyv1.PodDisruptionBudget); w.UID == b.UID && w.Generation > b.Generation {
		return w
	}
	g.written.CompareAndDelete(run, last)
	return b
}

// gone forgets one that is no more.
func (g *guards) gone(b *policyv1.PodDisruptionBudget) { g.written.Delete(guardedBy(b)) }

// WriteGuard makes a PodDisruptionBudget or, where it has a UID, changes how many of which pods are to be available,
// whatever it said before: members of a selector, for one, are not merged.
func (g *guards) WriteGuard(ctx context.Context, b *policyv1.PodDisruptionBudget) error {
	budgets := g.kube.PolicyV1().PodDisruptionBudgets(b.Namespace)
	set := func(path string, value any) map[string]any {
		return map[string]any{"op": "add", "path": path, "value": value}
	}
	patch, err := json.Marshal([]any{set("/metadata/uid", b.UID), set("/spec/minAvailable", b.Spec.MinAvailable),
		set("/spec/maxUnavailable", b.Spec.MaxUnavailable), set("/spec/selector", b.Spec.Selector)})
	if err != nil {
		return err
	}
	var out *policyv1.PodDisruptionBudget
	if b.UID == "" {
		out, err = budgets.Create(ctx, b, metav1.CreateOptions{})
	} else {
		out, err = budgets.Patch(ctx, b.Name, types.JSONPatchType, patch, metav1.PatchOptions{})
	}
	if b.UID != "" && (apierrors.IsNotFound(err) || apierrors.IsConflict(err)) {
		g.written.Delete(guardedBy(b)) // it is gone, or another has its name: the cache tells
		return nil
	}
	if apierrors.IsAlreadyExists(err) {
		return reconcile.NameTaken{Kind: "PodDisruptionBudget", Name: b.Name}
	}
	if err != nil {
		return fmt.Errorf("PodDisruptionBudget %s: %w", b.Name, err)
	}
	g.written.Store(guardedBy(out), out)
	return nil
}

// DropGuard deletes a PodDisruptionBudget, if it is still the one that was seen.
func (g *guards) DropGuard(ctx context.Context, b *policyv1.PodDisruptionBudget) error {
	err := g.kube.PolicyV1().PodDisruptionBudgets(b.Namespace).Delete(ctx, b.Name, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(b.UID))})
	return ignore(err, apierrors.IsNotFound, apierrors.IsConflict)
}

// guarded has a Run looked at whose PodDisruptionBudget has changed: somebody may have edited it.
func (r *reconciler) guarded(b *policyv1.PodDisruptionBudget) {
	if run := guardedBy(b); run.Name != "" {
		r.changed(run, lane.End)
	}
}

// unguarded has one looked at whose PodDisruptionBudget is gone.
func (r *reconciler) unguarded(b *policyv1.PodDisruptionBudget) {
	r.guards.gone(b)
	r.guarded(b)
}
