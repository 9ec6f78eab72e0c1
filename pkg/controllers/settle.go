package controllers

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
)

// deletedAtOnce is how many Leases go at most each time the ledger is settled.
const deletedAtOnce = 1000

// youngestBeyond is how old a closed Lease has to be to go because there are too many.
const youngestBeyond = time.Hour

// settle folds closed Leases that have reached the age of retention into records, and those of namespaces that are
// being deleted before they do, and what is more than the ledger's limit, and deletes them (R9).
func (l *ledger) settle(ctx context.Context) {
	period := max(time.Second, min(time.Minute, l.retention/4))
	for ctx.Err() == nil {
		some := l.fold(l.through(l.retention))
		some = l.foldBeyond(ctx, l.through(min(youngestBeyond, l.retention))) || some
		if more := l.storeSettled(ctx); some || more {
			continue // more may follow now that these are stored
		}
		select {
		case <-ctx.Done():
		case <-l.settled.hurry:
		case <-l.clock.After(period):
		}
	}
}

// through returns by when Leases have to have ended to be of an age: none did while the clock may be ahead.
func (l *ledger) through(age time.Duration) time.Time {
	if l.doubt.doubts() {
		return time.Unix(0, 0)
	}
	return l.clock.Now().Add(-age)
}

// fold settles what is to be settled, for storeSettled to write, and reports whether there was any.
func (l *ledger) fold(through time.Time) (some bool) {
	for _, payer := range l.book.Budgets.Charged() {
		folded, changed := l.book.Budgets.Settle(payer, through)
		if changed {
			l.settled.fold(payer, folded)
		}
		some = some || len(folded) > 0
	}
	return some
}

// foldBeyond settles closed Leases that ended by an instant, where there are more than the limit, and reports whether
// there were any. Those of whoever has most go: a Budget that has no more than an equal share keeps all.
func (l *ledger) foldBeyond(ctx context.Context, through time.Time) (some bool) {
	closed, keep := l.book.Budgets.Closed(l.limit)
	undeleted := l.settled.undeleted()
	metrics.ClosedLeases.Set(float64(closed + undeleted))
	metrics.ClosedLeasesLimit.Set(float64(l.limit))
	if closed <= l.limit || undeleted >= deletedAtOnce {
		return false // those go first
	}
	for _, payer := range l.book.Budgets.Charged() {
		folded := l.book.Budgets.SettleBeyond(payer, keep, through)
		if len(folded) == 0 {
			continue
		}
		some = true
		l.settled.fold(payer, folded)
		metrics.LeasesSettledEarly.Add(float64(len(folded)))
		klog.FromContext(ctx).Info("There are more closed Leases than ledgerLimit; the oldest of a Budget with many go",
			"budget", payer, "leases", len(folded))
	}
	return some
}

// storeSettled writes the records that have changed and then deletes the Leases in them, a number of them, and reports
// whether others can be deleted at once. What fails is left for the next time, and holds up nobody else's.
func (l *ledger) storeSettled(ctx context.Context) (more bool) {
	budgets, leases := l.settled.take()
	unstored := map[string]bool{}
	for _, b := range budgets {
		if err := l.records.write(ctx, b); err != nil {
			klog.FromContext(ctx).Error(err, "Storing what a Budget's settled Leases have spent; they are kept until it "+
				"can be stored", "budget", b)
			unstored[b] = true
			l.settled.changed([]string{b})
		}
	}
	metrics.RecordsUnstored.Set(float64(len(unstored)))
	var later []settledLease
	defer func() { l.settled.add(later...) }()
	later, leases = parted(leases, unstored)
	n := min(deletedAtOnce, len(leases))
	later = append(later, leases[n:]...)
	failed := make([]bool, n)
	err := inParallel(n, func(i int) error {
		err := l.deleteLease(ctx, leases[i])
		failed[i] = err != nil
		return err
	})
	if err != nil {
		klog.FromContext(ctx).Error(err, "Deleting settled Leases")
	}
	for i := range failed {
		if failed[i] {
			later = append(later, leases[i])
		}
	}
	return n < len(leases) && slices.Contains(failed, false)
}

// parted returns the Leases whose Budget's record is not stored, and the others.
func parted(leases []settledLease, unstored map[string]bool) (kept, stored []settledLease) {
	for _, l := range leases {
		if unstored[l.budget] {
			kept = append(kept, l)
		} else {
			stored = append(stored, l)
		}
	}
	return kept, stored
}

// deleteLease deletes a settled Lease. It is gone when the API server does not have it any more: finalizers may keep
// it, and as long as it is there its Budget's record has to tell that it counts no more.
func (l *ledger) deleteLease(ctx context.Context, of settledLease) error {
	lease := &rqv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name}}
	err := l.client.Delete(ctx, lease)
	if err == nil {
		err = l.client.Get(ctx, of.NamespacedName, lease)
	}
	switch {
	case err == nil:
		return fmt.Errorf("Lease %s is deleted and stays: finalizers %q keep it", of.NamespacedName, lease.Finalizers)
	case apierrors.IsNotFound(err):
		l.book.Budgets.Dropped(of.budget, of.NamespacedName)
		return nil
	}
	return err
}
