package plugins

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/fence"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

var (
	_ fwk.PreBindPlugin  = &Jobtree{}
	_ fwk.PostBindPlugin = &Jobtree{}
)

// PreBindPreFlight says that pods of Runs have something to do before they are bound.
func (pl *Jobtree) PreBindPreFlight(_ context.Context, _ fwk.CycleState, pod *corev1.Pod,
	_ string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	if !ours(pod) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	return &fwk.PreBindPreFlightResult{AllowParallel: true}, nil
}

// PreBind writes the pod's Lease, so that no pod ever runs without one. Writing it again is harmless: its name is the
// pod's.
func (pl *Jobtree) PreBind(ctx context.Context, _ fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	if !ours(pod) {
		return nil
	}
	return fwk.AsStatus(pl.turnstile.let(ctx, pod, func() error { return pl.openLease(ctx, pod, node) }))
}

func (pl *Jobtree) openLease(ctx context.Context, pod *corev1.Pod, node string) error {
	lease, err := pl.book.NewLease(pod.UID, pl.clock.Now())
	if err != nil {
		return err
	}
	err = pl.ledger.Create(ctx, lease)
	switch {
	case apierrors.IsAlreadyExists(err):
		return pl.adopt(ctx, pod, node, lease)
	case refused(err):
		if _, earlier := pl.sought.Load(pod.UID); earlier { // this answer says nothing of an attempt before
			pl.askFor(ctx, pod.UID, client.ObjectKeyFromObject(lease))
		} else {
			pl.book.NotWritten(pod.UID, client.ObjectKeyFromObject(lease))
		}
		return fmt.Errorf("the pod's Lease is not written: %w", err)
	case err != nil:
		if pl.seek(pod.UID) {
			go pl.findLease(pl.process, pod.UID, lease)
		}
		return fmt.Errorf("writing the pod's Lease: %w", err)
	}
	metrics.LeasesOpened.Inc()
	pl.book.SetLease(lease)
	return nil
}

// seek reports whether nobody looks for a pod's Lease, who is to do so now.
func (pl *Jobtree) seek(pod types.UID) bool {
	_, sought := pl.sought.LoadOrStore(pod, true)
	return !sought
}

// findLease finds out whether the Lease of a pod was written, when the answer of the API server was lost. As long as
// the pod is there, the next attempt to bind it finds out; it may be deleted before, also during such an attempt, which
// may write the Lease yet.
func (pl *Jobtree) findLease(ctx context.Context, pod types.UID, lease *rqv1.Lease) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-pl.clock.After(askPause):
		}
		pl.sought.Delete(pod) // an attempt that fails from now on finds nobody who may have looked before
		open, gone := pl.book.Unsettled(pod)
		if !open {
			return
		}
		if gone && !pl.turnstile.has(pod) { // no attempt begins any more
			pl.askFor(ctx, pod, client.ObjectKeyFromObject(lease))
		}
		if !pl.seek(pod) {
			return
		}
	}
}

// askPause is how long it takes until the API server is asked for a Lease, and how long it may take to answer.
const askPause = 5 * time.Second

// askFor asks the API server for the Lease of a pod that nobody is writing.
func (pl *Jobtree) askFor(ctx context.Context, pod types.UID, name types.NamespacedName) {
	asking, cancel := context.WithTimeout(ctx, askPause)
	defer cancel()
	got := &rqv1.Lease{}
	err := pl.ledger.Get(asking, name, got)
	switch {
	case err == nil:
		pl.book.SetLease(got)
	case apierrors.IsNotFound(err):
		pl.book.NotWritten(pod, name)
	}
}

// PostBind measures how long a lost rank was away.
func (pl *Jobtree) PostBind(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	r, replaces := rank.ReplacementOf(pod)
	if !replaces || !ours(pod) {
		return
	}
	source := "free"
	if r.Spare != "" {
		source = "spare"
	}
	metrics.Swaps.WithLabelValues(source).Inc()
	if at := pl.book.LostAt(r.Lost); !at.IsZero() {
		metrics.RebindSeconds.Observe(pl.clock.Since(at).Seconds())
	}
}

// adopt takes a Lease that was written before, by this process or by its predecessor, for the pod's own.
func (pl *Jobtree) adopt(ctx context.Context, pod *corev1.Pod, node string, want *rqv1.Lease) error {
	got := &rqv1.Lease{}
	if err := pl.ledger.Get(ctx, client.ObjectKeyFromObject(want), got); err != nil {
		return fmt.Errorf("reading the pod's Lease: %w", err)
	}
	if got.PodUID() != pod.UID || got.Status.Closed {
		return fmt.Errorf("Lease %s is not this pod's, or is closed", got.Name)
	}
	pl.book.SetLease(got)
	if on := got.Node(); on != node {
		return fmt.Errorf("the pod's Lease holds GPUs on node %s", on)
	}
	return nil
}

// refused reports whether the API server has answered that it does not hold the object, or was not asked. Any other
// error leaves that open.
func refused(err error) bool {
	return errors.Is(err, fence.ErrNotLeading) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) ||
		apierrors.IsNotFound(err) || apierrors.IsBadRequest(err)
}
