package dashboard

import (
	"context"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// rightsAsked is how often it is asked whether what is watched may still be read: the API server lets a watch go on
// that it would not let begin.
const rightsAsked = time.Minute

// rightsShare is by how much longer it is waited than it took to ask, where that is more than a minute: who knows of
// many namespaces, and may read few of them, has many to ask for.
const rightsShare = 100

// rights has it asked again and again whether what is watched may still be read, and whether more may be.
func (w *watched) rights(ctx context.Context, s *session.Session, c client.WithWatch) {
	for pause := rightsAsked; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		begun := time.Now()
		w.askRights(ctx)
		w.askGained(ctx, s, c)
		pause = max(rightsAsked, rightsShare*time.Since(begun))
	}
}

// askRights has what may not be read any more be forgotten, and be asked for until it may be read again. Where the API
// server does not answer such questions, that is noticed when a watch ends, which each does within ten minutes.
func (w *watched) askRights(ctx context.Context) {
	for _, s := range w.sources() {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Namespace: s.namespace,
				Group: s.resource.Group, Resource: s.resource.Resource}}}
		if err := s.client.Create(ctx, review); err == nil && !review.Status.Allowed {
			s.shut()
		}
	}
}

// door is whether a source may be read, as far as that is known, and the watch that it has open.
type door struct {
	mu   sync.Mutex
	is   bool // shut
	open watch.Interface
}

// shut forgets what a source has told, and ends its watch. None begins before a list has been allowed again.
func (s *source) shut() {
	s.door.mu.Lock()
	s.door.is = true
	if s.door.open != nil {
		s.door.open.Stop()
	}
	s.door.mu.Unlock()
	s.told(s.refused())
}

// opened takes note of a watch, unless none may begin.
func (d *door) opened(w watch.Interface) (may bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = w
	return !d.is
}

// listed takes note of a list that has been allowed.
func (d *door) listed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.is = false
}

// refused is the refusal of a list.
func (s *source) refused() error {
	return apierrors.NewForbidden(schema.GroupResource{Group: s.resource.Group, Resource: s.resource.Resource}, "", nil)
}
