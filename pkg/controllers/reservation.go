package controllers

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// reserve brings a Run's Reservation a step further: it is made with the refusal, follows the forecast, publishes what has
// been decided, and ends with the Run's start or with the Run. It returns the Reservation that the Run waits for; nil when
// there is none.
func (c *Controllers) reserve(ctx context.Context, name types.NamespacedName, run *rqv1.Run) (*rqv1.Reservation, error) {
	all, err := c.reservationsOf(name)
	if err != nil {
		return nil, err
	}
	var current *rqv1.Reservation
	for _, r := range all {
		switch {
		case book.Ended(r):
		case run == nil || r.Labels[book.LabelRunUID] != string(run.UID) || run.DeletionTimestamp != nil:
			if err := c.endReservation(ctx, r, rqv1.ReservationCanceled, "the Run is gone", nil); err != nil {
				return nil, err
			}
		default:
			current = r
		}
	}
	switch {
	case run == nil || run.DeletionTimestamp != nil:
		return nil, nil
	case run.Status.Phase == rqv1.RunCompleted || run.Status.Phase == rqv1.RunFailed:
		return nil, c.cancel(ctx, current, "the Run has ended")
	case run.Status.Phase == rqv1.RunRunning:
		return nil, c.releaseReservation(ctx, current)
	}
	return c.keepPromise(ctx, run, current, all)
}

// keepPromise has the Reservation of a Run that waits say what the book does.
func (c *Controllers) keepPromise(ctx context.Context, run *rqv1.Run, current *rqv1.Reservation, all []*rqv1.Reservation) (*rqv1.Reservation, error) {
	prospect := c.book.Prospect(run.UID)
	switch {
	case prospect.Activation != nil && current != nil:
		return current, c.publish(ctx, current, prospect.Activation)
	case current != nil && current.Status.State == rqv1.ReservationActivating:
		return current, nil
	case prospect.Promise != nil && current == nil:
		return c.makeReservation(ctx, run, prospect, all)
	case prospect.Promise != nil:
		return c.updateReservation(ctx, current, prospect)
	case prospect.Refusal != nil:
		return nil, c.cancel(ctx, current, "there is no date any more: "+prospect.Refusal.Message)
	}
	return current, nil // it has not been tried again, or it is about to start
}

func (c *Controllers) cancel(ctx context.Context, current *rqv1.Reservation, why string) error {
	if current == nil {
		return nil
	}
	return c.endReservation(ctx, current, rqv1.ReservationCanceled, why, nil)
}

// releaseReservation ends the Reservation of a Run that has started, once all that was cut for it has left.
func (c *Controllers) releaseReservation(ctx context.Context, current *rqv1.Reservation) error {
	if current == nil || slices.ContainsFunc(current.Status.Cuts, func(cut rqv1.Cut) bool { return c.book.Outstanding(current, &cut) }) {
		return nil
	}
	return c.endReservation(ctx, current, rqv1.ReservationReleased, "the Run has started", nil)
}

func (c *Controllers) reservationsOf(run types.NamespacedName) ([]*rqv1.Reservation, error) {
	objects, err := c.watches.reservations.GetIndexer().ByIndex(byRun, run.String())
	out := make([]*rqv1.Reservation, 0, len(objects))
	for _, o := range objects {
		out = append(out, o.(*rqv1.Reservation))
	}
	slices.SortFunc(out, func(x, y *rqv1.Reservation) int { return turn(x) - turn(y) })
	return out, err
}

// turn returns the number at the end of a Reservation's name: RUN-r0, RUN-r1, …
func turn(r *rqv1.Reservation) int {
	n, err := strconv.Atoi(r.Name[strings.LastIndex(r.Name, "-r")+len("-r"):])
	if err != nil {
		return -1 // nobody but the scheduler names Reservations
	}
	return n
}

// makeReservation creates a Run's Reservation and publishes the commitment.
func (c *Controllers) makeReservation(ctx context.Context, run *rqv1.Run, p book.Prospect, all []*rqv1.Reservation) (*rqv1.Reservation, error) {
	next := 0
	if len(all) > 0 {
		next = turn(all[len(all)-1]) + 1
	}
	r := &rqv1.Reservation{
		ObjectMeta: metav1.ObjectMeta{Namespace: run.Namespace, Name: fmt.Sprintf("%s-r%d", run.Name, next),
			Labels: map[string]string{rqv1.LabelRun: run.Name, book.LabelRunUID: string(run.UID)}},
		Spec: specOf(run.Name, run.Namespace, p.Promise),
	}
	err := c.client.Create(ctx, r)
	if apierrors.IsAlreadyExists(err) {
		err = c.client.Get(ctx, client.ObjectKeyFromObject(r), r)
	}
	if err != nil {
		return nil, fmt.Errorf("creating Reservation %s/%s: %w", r.Namespace, r.Name, err)
	}
	c.events.Eventf(reference(run), nil, corev1.EventTypeNormal, "Reserved", "Reserve", "%s", promised(p.Promise))
	return r, c.writeReservation(ctx, r, statusOf(r, p, c.book.Commitment(r.UID), c.clock.Now()))
}

// promised says when a Run starts.
func promised(p *forecast.Promise) string {
	return fmt.Sprintf("reserved to start at %s (%s): short by %d GPUs in %s", p.At.UTC().Format(time.RFC3339), p.Confidence, p.Slice.Deficit, p.Slice.Scope)
}

// updateReservation writes what has changed about a promise.
func (c *Controllers) updateReservation(ctx context.Context, r *rqv1.Reservation, p book.Prospect) (*rqv1.Reservation, error) {
	if spec := specOf(r.Spec.RunRef.Name, r.Spec.RunRef.Namespace, p.Promise); !equality.Semantic.DeepEqual(spec, r.Spec) {
		r = r.DeepCopy()
		r.Spec = spec
		if err := c.client.Update(ctx, r); err != nil {
			return r, err
		}
	}
	next := statusOf(r, p, c.book.Commitment(r.UID), c.clock.Now())
	if !tells(&r.Status, next) {
		return r, nil
	}
	return r, c.writeReservation(ctx, r, next)
}

// tells reports whether a status says something new: anything but the countdown, or that when it has halved.
func tells(was, next *rqv1.ReservationStatus) bool {
	a, b := *was, *next
	a.CountdownSeconds, b.CountdownSeconds = nil, nil
	if !equality.Semantic.DeepEqual(a, b) {
		return true
	}
	return was.CountdownSeconds == nil || *next.CountdownSeconds <= *was.CountdownSeconds/2 && *next.CountdownSeconds < *was.CountdownSeconds
}

func specOf(name, namespace string, p *forecast.Promise) rqv1.ReservationSpec {
	spec := rqv1.ReservationSpec{
		RunRef:        rqv1.NamespacedName{Name: name, Namespace: namespace},
		EarliestStart: metav1.NewTime(p.At.Truncate(time.Second)), PayingEnvelopes: p.Payers,
		IntendedSlice: &rqv1.IntendedSlice{Domain: p.Slice.Labels},
	}
	for _, held := range p.Nodes {
		spec.IntendedSlice.Nodes = append(spec.IntendedSlice.Nodes, held.Node)
	}
	return spec
}

func statusOf(r *rqv1.Reservation, p book.Prospect, commitment string, now time.Time) *rqv1.ReservationStatus {
	next := r.Status.DeepCopy()
	left := max(0, int64(p.Promise.At.Sub(now)/time.Second))
	next.State, next.CountdownSeconds = rqv1.ReservationPending, &left
	if p.Refusal != nil {
		next.Reason = p.Refusal.Message
	}
	next.Forecast = &rqv1.Forecast{DeficitGPUs: int32(p.Promise.Slice.Deficit), Scope: p.Promise.Slice.Scope, Confidence: p.Promise.Confidence,
		Remedies: p.Promise.Remedies}
	next.ConflictSet = p.Promise.Conflicts
	next.Lottery = &rqv1.Lottery{Commitment: commitment, Odds: p.Promise.Odds}
	return next
}

// publish writes what has been decided, in two steps: the conflict set that the draw is about, and then the nonce, the draws
// and the cuts (R21). The Runs that are cut learn of it from there.
func (c *Controllers) publish(ctx context.Context, r *rqv1.Reservation, a *book.Activation) error {
	next := r.Status.DeepCopy()
	nonce := hex.EncodeToString(a.Nonce[:])
	if next.ActivatedAt == nil && !a.Failed {
		at, none := metav1.NewMicroTime(a.At), int64(0)
		next.State, next.ActivatedAt, next.ConflictSet, next.CountdownSeconds = rqv1.ReservationActivating, &at, a.Conflicts, &none
		next.Lottery = &rqv1.Lottery{Commitment: resolver.Commitment(a.Nonce), ConflictSetDigest: resolver.Digest(a.Conflicts), Odds: a.Odds}
		r = r.DeepCopy()
		if err := c.writeReservation(ctx, r, next); err != nil {
			return err
		}
		next = r.Status.DeepCopy()
	}
	if a.Failed {
		return c.endReservation(ctx, r, rqv1.ReservationCanceled, "the Run could not start after all: what was to be free is not", &nonce)
	}
	next.Lottery.Nonce, next.Lottery.Draws, next.Cuts = nonce, a.Draws, a.Cuts
	if err := c.writeReservation(ctx, r, next); err != nil {
		return err
	}
	metrics.Draws.Add(float64(len(a.Draws)))
	for i := range a.Cuts {
		metrics.Cuts.WithLabelValues(string(a.Cuts[i].Action)).Inc()
	}
	return nil
}

// endReservation writes how a Reservation ended. nonce, if any, is revealed.
func (c *Controllers) endReservation(ctx context.Context, r *rqv1.Reservation, state rqv1.ReservationState, why string, nonce *string) error {
	next := r.Status.DeepCopy()
	now := metav1.NewTime(c.clock.Now())
	next.State, next.Reason, next.EndedAt, next.CountdownSeconds = state, why, &now, nil
	if nonce != nil && next.Lottery != nil {
		next.Lottery.Nonce = *nonce
	}
	if state == rqv1.ReservationReleased {
		metrics.ForecastError.Observe(r.Spec.EarliestStart.Sub(now.Time).Seconds())
	}
	return ignore(c.writeReservation(ctx, r, next), apierrors.IsNotFound)
}

// writeReservation writes a Reservation's status, and has the book know at once.
func (c *Controllers) writeReservation(ctx context.Context, r *rqv1.Reservation, status *rqv1.ReservationStatus) error {
	next := r.DeepCopy()
	next.Status = *status
	if err := c.client.Status().Update(ctx, next); err != nil {
		return err
	}
	if r.Status.State != status.State && status.State != rqv1.ReservationPending {
		kind := corev1.EventTypeNormal
		about := next.DeepCopy()
		about.SetGroupVersionKind(rqv1.GroupVersion.WithKind("Reservation"))
		c.events.Eventf(about, nil, kind, string(status.State), "Reserve", "%s", status.Reason)
	}
	*r = *next
	c.book.SetReservation(next)
	return nil
}
