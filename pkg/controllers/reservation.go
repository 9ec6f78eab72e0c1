package controllers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
)

// writeReservation carries a write out and has the book know at once.
func (c *Controllers) writeReservation(ctx context.Context, w *lifecycle.Write) (*rqv1.Reservation, error) {
	r := w.Reservation
	var err error
	switch w.Verb {
	case lifecycle.Create:
		if err = c.client.Create(ctx, r); apierrors.IsAlreadyExists(err) {
			err = c.client.Get(ctx, client.ObjectKeyFromObject(r), r)
		}
	case lifecycle.Update:
		err = c.client.Update(ctx, r)
	case lifecycle.UpdateStatus:
		err = c.client.Status().Update(ctx, r)
	}
	if err != nil {
		return nil, fmt.Errorf("writing Reservation %s/%s: %w", r.Namespace, r.Name, err)
	}
	c.book.SetReservation(r)
	c.tellReservation(w.Verb, r, w.Stuck)
	c.tellNodes(r, w.Stuck)
	return r, nil
}

// tellReservation makes events and counts of what has become of a Reservation.
func (c *Controllers) tellReservation(verb lifecycle.Verb, r *rqv1.Reservation, stuck []book.Stuck) {
	about := r.DeepCopy()
	about.SetGroupVersionKind(rqv1.GroupVersion.WithKind("Reservation"))
	tell := func(reason, format string, args ...any) {
		c.events.Eventf(about, nil, corev1.EventTypeNormal, reason, "Reserve", format, args...)
	}
	s := &r.Status
	switch {
	case verb == lifecycle.Create:
		tell("Reserved", "Run %s is to start at %s", r.Spec.RunRef.Name, r.Spec.EarliestStart.UTC().Format(time.RFC3339))
	case verb == lifecycle.Update, s.State == rqv1.ReservationPending:
	case s.State == rqv1.ReservationActivating && len(stuck) > 0:
		tell("PlannedAgain", "%s", s.Reason)
	case s.State == rqv1.ReservationActivating && s.Lottery.Nonce == "":
		tell("Activating", "the conflict set is published; its digest is %s", s.Lottery.ConflictSetDigest)
	case s.State == rqv1.ReservationActivating:
		tell("Cut", "%d draws, %d cuts; check them with kubectl runs explain --verify %s -n %s", len(s.Lottery.Draws), len(s.Cuts), r.Name, r.Namespace)
		metrics.Draws.Add(float64(len(s.Lottery.Draws)))
		for i := range s.Cuts {
			metrics.Cuts.WithLabelValues(string(s.Cuts[i].Action)).Inc()
		}
	default:
		tell(string(s.State), "%s", s.Reason)
		if s.Cause != "" {
			metrics.CutsInVain.WithLabelValues(string(s.Cause)).Add(float64(len(s.Cuts)))
		}
		if s.CalledOff != "" {
			metrics.CalledOff.Inc()
		}
		if s.State == rqv1.ReservationReleased {
			metrics.ForecastError.Observe(r.Spec.EarliestStart.Sub(s.EndedAt.Time).Seconds())
		}
	}
}
