package controllers

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
)

// ofGoneRuns leaves out the pods that are to be deleted because their Runs are gone, unless the API server says itself that
// they are: it has no Run of that name, or one that was made later. It is asked once for all pods of a Run.
func (c *Controllers) ofGoneRuns(ctx context.Context, deletions []lifecycle.Deletion) ([]lifecycle.Deletion, error) {
	gone := map[types.UID]bool{}
	out := make([]lifecycle.Deletion, 0, len(deletions))
	for i := range deletions {
		d := &deletions[i]
		if _, asked := gone[d.Run]; d.If == lifecycle.RunGone && !asked {
			var err error
			if gone[d.Run], err = c.isGone(ctx, runOfPod(d.Pod), d.Run); err != nil {
				return nil, err
			}
		}
		if d.If != lifecycle.RunGone || gone[d.Run] {
			out = append(out, *d)
		}
	}
	return out, nil
}

// isGone asks the API server whether there is no Run of a name with a UID.
func (c *Controllers) isGone(ctx context.Context, name types.NamespacedName, uid types.UID) (bool, error) {
	run := &rqv1.Run{}
	switch err := c.client.Get(ctx, name, run); {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("asking whether Run %s is gone: %w", name, err)
	}
	return run.UID != uid, nil
}
