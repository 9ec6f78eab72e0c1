package cli

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// retryEvery is the pause between two attempts to reach an API server that has gone away.
const retryEvery = time.Second

// stream follows the objects of one kind through expired watches and restarts of the API server.
type stream struct {
	client client.WithWatch
	// kind is an empty list of the kind, options what to select of it.
	kind    client.ObjectList
	options []client.ListOption
	// limit bounds the first list. 1 when only what changes from now on is of interest, 0 for all objects.
	limit int64
	// listed is called with the list, from which the watch goes on, and again when changes have been missed.
	listed func(client.ObjectList)
	// changed is called with every change.
	changed func(watch.EventType, client.Object)
	// lost is called when the API server goes away, with the reason, and with nil when it is back.
	lost func(error)
}

// run follows the stream until the context ends. A first attempt that fails is returned as an error; later ones are
// repeated.
func (s *stream) run(ctx context.Context) error {
	version, away := "", false
	for first := true; ; first = false {
		err := s.attempt(ctx, &version, func() {
			if away {
				away = false
				s.lost(nil)
			}
		})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case first && version == "":
			return err
		case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
			version = ""
			continue
		}
		if err != nil && !away { // a watch that ends without an error is routine
			away = true
			s.lost(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(retryEvery):
		}
	}
}

// attempt lists unless it knows the version to go on from, and watches until the watch ends.
func (s *stream) attempt(ctx context.Context, version *string, connected func()) error {
	if *version == "" {
		options := append([]client.ListOption{client.Limit(s.limit)}, s.options...)
		list := s.kind.DeepCopyObject().(client.ObjectList)
		if err := s.client.List(ctx, list, options...); err != nil {
			return err
		}
		s.listed(list)
		*version = list.GetResourceVersion()
	}
	raw := &metav1.ListOptions{ResourceVersion: *version, AllowWatchBookmarks: true}
	watcher, err := s.client.Watch(ctx, s.kind, append([]client.ListOption{&client.ListOptions{Raw: raw}}, s.options...)...)
	if err != nil {
		return err
	}
	defer watcher.Stop()
	connected()
	for event := range watcher.ResultChan() {
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		object, ok := event.Object.(client.Object)
		if !ok {
			return errors.New("the watch sent something that is no object")
		}
		*version = object.GetResourceVersion()
		if event.Type != watch.Bookmark {
			s.changed(event.Type, object)
		}
	}
	return nil
}
