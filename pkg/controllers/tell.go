package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
)

// tell writes a Run's status and counts what it changes.
func (c *Controllers) tell(ctx context.Context, o lifecycle.Observed, status *rqv1.RunStatus) error {
	if err := c.writeStatus(ctx, o.Run, status); err != nil {
		return err
	}
	c.countAdmission(o, status)
	countWidth(o.Run.Status.Width, status.Width)
	return nil
}

// tellFirst writes the status of a decision before the rest of it is carried out, where that is how it is done. One that the API
// server takes for invalid, now and the next time, keeps no pod from going: it is told in an event.
func (c *Controllers) tellFirst(ctx context.Context, o lifecycle.Observed, decision *lifecycle.Decision) error {
	if !decision.TellFirst() {
		return nil
	}
	status := decision.Status
	decision.Status = nil
	err := c.tell(ctx, o, status)
	if !apierrors.IsInvalid(err) {
		return err
	}
	klog.FromContext(ctx).Error(err, "The API server refuses a Run's status; its pods go all the same", "run", klog.KObj(o.Run))
	c.events.Eventf(reference(o.Run), nil, corev1.EventTypeWarning, "StatusRefused", "Reconcile",
		"pods go, and the Run's status cannot say so: %.900s", err.Error())
	return nil
}
