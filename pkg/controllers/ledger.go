package controllers

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
)

const (
	// Namespace holds the scheduler and the records of settled Leases.
	Namespace = "jobtree-system"
	// page is how many Leases are read at a time.
	page = 500
)

// ledger is what the API server stores of who paid for what: it is read once, and settled as it ages.
type ledger struct {
	book      *book.Book
	client    client.Client
	kube      kubernetes.Interface
	clock     clock.Clock
	retention time.Duration
	settled   settled
	changed   func(run types.NamespacedName) // is told of Runs whose Leases have been looked up
}

func newLedger(b *book.Book, c client.Client, kube kubernetes.Interface, clock clock.Clock,
	retention time.Duration) *ledger {
	return &ledger{book: b, client: c, kube: kube, clock: clock, retention: retention,
		settled: settled{budgets: map[string]bool{}, versions: map[string]string{}, hurry: make(chan struct{}, 1)}}
}

// read reads the records and all Leases from the API server itself: a predecessor may have written some that the
// watch has not brought yet, and closed ones are not watched.
func (l *ledger) read(ctx context.Context) error {
	versions, through, err := l.readRecords(ctx)
	if err != nil {
		return err
	}
	options := &client.ListOptions{Limit: page}
	for {
		leases := &rqv1.LeaseList{}
		if err := l.client.List(ctx, leases, options); err != nil {
			return fmt.Errorf("reading the Leases: %w", err)
		}
		for i := range leases.Items {
			lease := &leases.Items[i]
			l.book.SetLease(lease)
			if of := lease.Spec.Payer.Budget; lease.Status.Closed && lease.Status.Ended.Unix() <= through[of] {
				l.settled.add(settledLease{client.ObjectKeyFromObject(lease), of}) // a predecessor did not come to delete it
			}
		}
		options.Continue = leases.Continue
		if options.Continue == "" {
			return l.unchanged(ctx, versions)
		}
	}
}

// lookUp finds out when Leases ended that are no longer among the open ones. A Lease that is gone altogether, with its
// namespace, ended now.
func (l *ledger) lookUp(ctx context.Context, leases []types.NamespacedName) {
	for _, name := range leases {
		lease := &rqv1.Lease{}
		err := l.client.Get(ctx, name, lease)
		switch {
		case apierrors.IsNotFound(err):
			l.settled.lost(l.book.LeaseLost(name, l.clock.Now()))
		case err != nil:
			klog.FromContext(ctx).Error(err, "Looking up when a Lease ended", "lease", name)
			time.AfterFunc(time.Second, func() { l.lookUp(ctx, []types.NamespacedName{name}) })
		default:
			l.settled.lost(l.book.SetLease(lease))
			l.changed(runOfLease(lease))
		}
	}
}
