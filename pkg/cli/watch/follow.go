package watch

import (
	"context"
	"errors"
	"slices"
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
	// only selects further what is listed, but not what is watched.
	only []client.ListOption
	// listed is called with the list, from which the watch goes on, and again when changes have been missed.
	listed func(client.ObjectList)
	// changed is called with every change.
	changed func(watch.EventType, client.Object)
	// lost is called when the API server goes away, with the reason, and with nil when it is back.
	lost func(error)

	// version to watch from; empty when the objects have to be listed again.
	version string
	away    bool
}

// begin lists the objects and notes the version to watch from. Its error is final: there is nothing to resume.
func (s *stream) begin(ctx context.Context) error {
	list := s.kind.DeepCopyObject().(client.ObjectList)
	if err := s.client.List(ctx, list, slices.Concat(s.options, s.only)...); err != nil {
		return err
	}
	s.listed(list)
	s.version = list.GetResourceVersion()
	return nil
}

// run follows the stream, once it has begun, until the context ends.
func (s *stream) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := s.attempt(ctx)
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			s.version = ""
			continue
		}
		if err != nil && ctx.Err() == nil && !s.away { // a watch that ends without an error is routine
			s.away = true
			s.lost(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryEvery):
		}
	}
}

// attempt lists, if changes have been missed, and watches until the watch ends.
func (s *stream) attempt(ctx context.Context) error {
	if s.version == "" {
		if err := s.begin(ctx); err != nil {
			return err
		}
	}
	raw := &metav1.ListOptions{ResourceVersion: s.version, AllowWatchBookmarks: true}
	watcher, err := s.client.Watch(ctx, s.kind, append([]client.ListOption{&client.ListOptions{Raw: raw}},
		s.options...)...)
	if err != nil {
		return err
	}
	defer watcher.Stop()
	if s.away {
		s.away = false
		s.lost(nil)
	}
	for event := range watcher.ResultChan() {
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		object, ok := event.Object.(client.Object)
		if !ok {
			return errors.New("the watch sent something that is not an object")
		}
		s.version = object.GetResourceVersion()
		if event.Type != watch.Bookmark {
			s.changed(event.Type, object)
		}
	}
	return nil
}
