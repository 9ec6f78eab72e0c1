package controllers

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
	"github.com/davidlangworthy/jobtree/pkg/reconcile"
)

// reservationWriter writes Reservations, makes events of what becomes of them and counts it.
type reservationWriter struct {
	book   *book.Book
	client client.Client
	events events.EventRecorder
}

// WriteReservation writes a Reservation and has the book know at once.
func (s reservationWriter) WriteReservation(ctx context.Context, w *lifecycle.Write) (*rqv1.Reservation, error) {
	r := w.Reservation
	var err error
	switch w.Verb {
	case lifecycle.Create:
		err = s.client.Create(ctx, r)
		if apierrors.IsAlreadyExists(err) {
			err = s.client.Get(ctx, client.ObjectKeyFromObject(r), r)
		}
	case lifecycle.Update:
		err = s.client.Update(ctx, r)
	case lifecycle.UpdateStatus:
		err = s.client.Status().Update(ctx, r)
	}
	if err != nil {
		return nil, fmt.Errorf("writing Reservation %s/%s: %w", r.Namespace, r.Name, err)
	}
	s.book.SetReservation(r)
	if direction := revised(w.Was, r.Spec.EarliestStart.Time); direction != "" {
		metrics.PromiseRevisions.WithLabelValues(direction).Inc()
	}
	s.tellReservation(w.Verb, r, w.Stuck)
	s.tellNodes(r, w.Stuck)
	return r, nil
}

// revised says in which direction a date has moved; "" if it has not.
func revised(was, is time.Time) string {
	switch {
	case was.IsZero() || is.Equal(was):
		return ""
	case is.Before(was):
		return "earlier"
	}
	return "later"
}

// tellReservation makes events and counts of what has become of a Reservation.
func (s reservationWriter) tellReservation(verb lifecycle.Verb, r *rqv1.Reservation, stuck []book.Stuck) {
	about := r.DeepCopy()
	about.SetGroupVersionKind(rqv1.GroupVersion.WithKind("Reservation"))
	tell := func(reason, format string, args ...any) {
		s.events.Eventf(about, nil, corev1.EventTypeNormal, reason, "Reserve", format, args...)
	}
	status := &r.Status
	switch {
	case verb == lifecycle.Create:
		tell("Reserved", "Run %s is to start at %s", r.Spec.RunRef.Name, r.Spec.EarliestStart.UTC().Format(time.RFC3339))
	case verb == lifecycle.Update, status.State == rqv1.ReservationPending:
	case status.State == rqv1.ReservationActivating && len(stuck) > 0:
		tell("PlannedAgain", "%s", status.Reason)
	case status.State == rqv1.ReservationActivating && status.Lottery.Nonce == "":
		tell("Activating", "the conflict set is published; its digest is %s", status.Lottery.ConflictSetDigest)
	case status.State == rqv1.ReservationActivating:
		tell("Cut", "%d draws, %d cuts; check them with kubectl runs explain --verify %s -n %s",
			len(status.Lottery.Draws), len(status.Cuts), r.Name, r.Namespace)
		metrics.Draws.Add(float64(len(status.Lottery.Draws)))
		for i := range status.Cuts {
			metrics.Cuts.WithLabelValues(string(status.Cuts[i].Action)).Inc()
		}
	default:
		tell(string(status.State), "%s", status.Reason)
		if status.Cause != "" {
			cuts := slices.DeleteFunc(slices.Clone(status.Cuts), func(c rqv1.Cut) bool { return !c.Action.Cuts() })
			metrics.CutsInVain.WithLabelValues(string(status.Cause)).Add(float64(len(cuts)))
		}
		if status.CalledOff != "" {
			metrics.CalledOff.Inc()
		}
		if status.State == rqv1.ReservationReleased {
			metrics.ForecastError.Observe(r.Spec.EarliestStart.Sub(status.EndedAt.Time).Seconds())
		}
	}
}

// tellNodes makes events of pods that have not gone from their nodes (R37).
func (s reservationWriter) tellNodes(r *rqv1.Reservation, stuck []book.Stuck) {
	for _, word := range reconcile.StuckWords(r, stuck) {
		tellNode(s.events, word.Node, corev1.EventTypeWarning, word.Reason, word.Text)
	}
}
