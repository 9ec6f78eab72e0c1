package controllers

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/davidlangworthy/jobtree/pkg/group"
)

// When a kind is looked for again that the API server does not serve, or does not let be watched, and when a watch that
// has ended is begun again.
const (
	watchServed = 10 * time.Second
	watchAgain  = time.Second
)

// watchObjects follows those objects that groups are known by and of which pods tell nothing: they may be made, or
// changed, after their pods. It returns at once, and ends with the context. What is not watched is read again now and
// then.
func (g *groups) watchObjects(ctx context.Context) {
	for _, kind := range group.PodGroups() {
		go g.watchKind(ctx, kind)
	}
}

// watchKind follows all objects of a kind, also of one that comes to be served later, until the context ends.
func (g *groups) watchKind(ctx context.Context, kind schema.GroupKind) {
	seen := objectsSeen{}
	for ctx.Err() == nil {
		rest := watchAgain
		err := g.watchOnce(ctx, kind, seen)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			rest = watchServed
		} else if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).V(2).Info("Watching a kind of groups again", "kind", kind, "err", err)
		}
		select {
		case <-ctx.Done():
		case <-g.clock.After(rest):
		}
	}
}

// objectsSeen tells objects from what they were when they were seen last.
type objectsSeen map[group.Key]uint64

// watchOnce reads all objects of a kind, and follows them until that ends.
func (g *groups) watchOnce(ctx context.Context, kind schema.GroupKind, seen objectsSeen) error {
	mapping, err := g.client.RESTMapper().RESTMapping(kind)
	if err != nil {
		return fmt.Errorf("finding %s: %w", kind, err)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := g.client.List(ctx, list); err != nil {
		return fmt.Errorf("listing %s: %w", kind, err)
	}
	gone := map[group.Key]bool{}
	for key := range seen {
		gone[key] = true
	}
	for i := range list.Items {
		delete(gone, g.objectIs(kind, &list.Items[i], seen))
	}
	for key := range gone {
		delete(seen, key)
		g.objectChanged(key)
	}
	from := &metav1.ListOptions{ResourceVersion: list.ResourceVersion}
	w, err := g.client.Watch(ctx, list, &client.ListOptions{Raw: from})
	if err != nil {
		return fmt.Errorf("watching %s: %w", kind, err)
	}
	defer w.Stop()
	for {
		var e watch.Event
		goes := false
		select {
		case <-ctx.Done():
		case e, goes = <-w.ResultChan():
		}
		object, is := e.Object.(client.Object)
		switch {
		case !goes:
			return nil
		case e.Type == watch.Error:
			return fmt.Errorf("watching %s: %w", kind, apierrors.FromObject(e.Object))
		case !is:
		case e.Type == watch.Deleted:
			key := keyOfObject(kind, object)
			delete(seen, key)
			g.objectChanged(key)
		default:
			g.objectIs(kind, object, seen)
		}
	}
}

func keyOfObject(kind schema.GroupKind, o client.Object) group.Key {
	return group.Key{Namespace: o.GetNamespace(), API: kind.Group, Kind: kind.Kind, Name: o.GetName()}
}

// objectIs has the group of an object be looked at if that says something else than before. What others write on its
// status is nothing new, unless the API server counts no generations of its kind: then nothing else tells of a change.
func (g *groups) objectIs(kind schema.GroupKind, o client.Object, seen objectsSeen) group.Key {
	key, sum := keyOfObject(kind, o), fnv.New64a()
	fmt.Fprint(sum, o.GetUID(), o.GetGeneration(), o.GetDeletionTimestamp() != nil, o.GetAnnotations())
	if o.GetGeneration() == 0 {
		fmt.Fprint(sum, o.GetResourceVersion())
	}
	if was, there := seen[key]; !there || was != sum.Sum64() {
		seen[key] = sum.Sum64()
		g.objectChanged(key)
	}
	return key
}

// objectChanged has a group be looked at, if there is one.
func (g *groups) objectChanged(key group.Key) {
	g.mu.Lock()
	_, known := g.known[key]
	g.mu.Unlock()
	if known {
		g.again(key)
	}
}
