package submit

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// goneWithin is how long a Run that is deleted may take to be gone. Somebody's finalizer may keep it for longer.
const goneWithin = 10 * time.Second

// createInPlace creates a Run in the place of one of the same name, for which it was refused, if that has ended and may
// be replaced.
func (s *submission) createInPlace(ctx context.Context, c client.Client, object *unstructured.Unstructured,
	refused error) error {
	var was rqv1.Run
	key := client.ObjectKeyFromObject(object)
	switch err := c.Get(ctx, key, &was); {
	case err != nil:
		return refused
	case !was.Ended() && s.replace:
		return session.Fail(session.ExitError, "Run %s/%s is %s: only Runs that have ended are replaced; cancel it first, "+
			"or choose another name", key.Namespace, key.Name, view.PhaseOf(&was))
	case !was.Ended():
		return refused
	case !s.replace:
		return session.Fail(session.ExitError, "Run %s/%s already exists and is %s; replace it with --replace-finished, or "+
			"choose another name", key.Namespace, key.Name, view.PhaseOf(&was))
	}
	err := c.Delete(ctx, &was, client.Preconditions{UID: &was.UID})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, lookEvery, goneWithin, true, func(ctx context.Context) (bool, error) {
		var is rqv1.Run
		err := c.Get(ctx, key, &is)
		return apierrors.IsNotFound(err) || err == nil && is.UID != was.UID, client.IgnoreNotFound(err)
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return session.Fail(session.ExitError, "Run %s/%s is deleted, but still there after %s: its finalizers keep it (%v)"+
			"; submit again when it is gone", key.Namespace, key.Name, goneWithin, was.Finalizers)
	}
	if err != nil {
		return err
	}
	return c.Create(ctx, object)
}
