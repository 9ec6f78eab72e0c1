package controllers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/lane"
)

// page is how many Leases are read at a time.
const page = 500

// ledger is what the API server stores of who paid for what: it is read once, and settled as it ages.
type ledger struct {
	book      *book.Book
	client    client.Client
	clock     clock.Clock
	doubt     *clockDoubt
	retention time.Duration
	limit     int // of closed Leases that are kept
	records   *records
	settled   *settled
	changed   func(types.NamespacedName, lane.Work) // is told of Runs whose Leases have been looked up
}

func newLedger(b *book.Book, c client.Client, kube kubernetes.Interface, doubt *clockDoubt,
	args *config.Args) *ledger {
	return &ledger{book: b, client: c, clock: doubt.clock, doubt: doubt,
		retention: args.LedgerRetention.Duration, limit: int(args.LedgerLimit),
		records: newRecords(b, kube), settled: newSettled()}
}

// read reads the records and all Leases from the API server itself: a predecessor may have written some that the
// watch has not brought yet, and closed ones are not watched.
func (l *ledger) read(ctx context.Context) error {
	if err := l.present(ctx); err != nil {
		return err
	}
	l.book.Reads(l.clock.Now())
	versions, stored, err := l.records.read(ctx)
	if err != nil {
		return err
	}
	var settled []settledLease // which a predecessor may not have come to delete
	through := map[string]int64{}
	for i := range stored {
		record := &stored[i]
		through[record.Budget] = record.Through
		for _, lease := range record.Leases {
			namespace, name, _ := strings.Cut(lease, "/")
			settled = append(settled, settledLease{types.NamespacedName{Namespace: namespace, Name: name}, record.Budget})
		}
	}
	options := &client.ListOptions{Limit: page}
	for {
		leases := &rqv1.LeaseList{}
		if err := l.client.List(ctx, leases, options); err != nil {
			if further := furtherOn(err); further != "" && further != options.Continue {
				options.Continue = further
				continue
			}
			return fmt.Errorf("reading the Leases: %w", err)
		}
		for i := range leases.Items {
			lease := &leases.Items[i]
			l.book.SetLease(lease)
			if of := lease.Spec.Payer.Budget; lease.Status.Closed && lease.Status.Ended.Unix() <= through[of] {
				settled = append(settled, settledLease{client.ObjectKeyFromObject(lease), of})
			}
		}
		options.Continue = leases.Continue
		if options.Continue == "" {
			break
		}
	}
	if err := l.records.unchanged(ctx, versions); err != nil {
		return err // and all is read again
	}
	l.settled.add(settled...)
	return nil
}

// furtherOn returns where to read on in a list of a version that etcd has compacted since its first page; empty where
// the API server does not say. The rest is of a later version then: what is opened or closed meanwhile of what has been
// read the watch tells. To begin again would take as long, and might never come to an end.
func furtherOn(err error) string {
	var status apierrors.APIStatus
	if apierrors.IsResourceExpired(err) && errors.As(err, &status) {
		return status.Status().Continue
	}
	return ""
}

// lookUp finds out when Leases ended that are no longer among the open ones, for as long as that takes or until the
// context ends. A Lease that is gone altogether, with its namespace, ended now.
func (l *ledger) lookUp(ctx context.Context, leases []types.NamespacedName) {
	left := l.lookUpOnce(ctx, leases)
	for len(left) > 0 && pause(ctx, l.clock, time.Second) {
		left = l.lookUpOnce(ctx, left)
	}
}

// lookUpOnce returns those of which it could not be found out.
func (l *ledger) lookUpOnce(ctx context.Context, leases []types.NamespacedName) (left []types.NamespacedName) {
	for _, name := range leases {
		lease := &rqv1.Lease{}
		err := l.client.Get(ctx, name, lease)
		switch {
		case apierrors.IsNotFound(err):
			l.settled.storeSoon(l.book.LeaseLost(name, l.clock.Now()))
		case err != nil:
			klog.FromContext(ctx).Error(err, "Looking up when a Lease ended", "lease", name)
			left = append(left, name)
		default:
			l.settled.storeSoon(l.book.SetLease(lease))
			l.changed(runOfLease(lease), lane.End)
		}
	}
	return left
}
