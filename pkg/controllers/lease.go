package controllers

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
)

// leaseWriter opens and closes Leases of pods that run.
type leaseWriter struct {
	book   *book.Book
	client client.Client
	// lost is told of Budgets whose records have changed because a Lease is about to go with its namespace.
	lost   func(budgets []string)
	unseen *unseen
}

// ReadLease asks the API server itself.
func (l leaseWriter) ReadLease(ctx context.Context, name types.NamespacedName) (*rqv1.Lease, error) {
	lease := &rqv1.Lease{}
	switch err := l.client.Get(ctx, name, lease); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading Lease %s: %s", name, err) // whatever refuses that refuses no Lease
	}
	return lease, nil
}

// OpenLease writes a Lease by which a pod goes on that had another. Of one that is not taken it makes certain that it
// is not there: an earlier answer may have been lost.
func (l leaseWriter) OpenLease(ctx context.Context, lease *rqv1.Lease) (*rqv1.Lease, error) {
	if lease.UID != "" {
		return lease, nil // it was read
	}
	opened := lease.DeepCopy()
	err := l.client.Create(ctx, opened)
	if err == nil {
		metrics.LeasesOpened.Inc()
		return opened, nil
	}
	is, unread := l.ReadLease(ctx, client.ObjectKeyFromObject(lease))
	if is != nil || unread != nil {
		return is, unread
	}
	return nil, err
}

// OutliveLeases writes until when Leases are open whose pods are gone.
func (l leaseWriter) OutliveLeases(ctx context.Context, leases []*rqv1.Lease) error {
	return inParallel(len(leases), func(i int) error {
		l.book.SetLease(leases[i])
		err := l.unseen.once(outliving(leases[i]), func() error {
			return l.client.Status().Update(ctx, leases[i].DeepCopy())
		})
		return ignore(err, apierrors.IsNotFound, apierrors.IsConflict)
	})
}

// CloseLeases writes that Leases are closed, unless they were before or have changed.
func (l leaseWriter) CloseLeases(ctx context.Context, ended []*rqv1.Lease) ([]*rqv1.Lease, error) {
	closed := make([]*rqv1.Lease, len(ended))
	err := inParallel(len(ended), func(i int) error {
		lease, closing := ended[i], writeTo("close", ended[i])
		if l.unseen.has(closing) {
			return nil
		}
		if err := l.client.Status().Update(ctx, lease); err != nil {
			return ignore(err, apierrors.IsNotFound, apierrors.IsConflict)
		}
		l.unseen.note(closing)
		metrics.LeasesClosed.WithLabelValues(string(lease.Status.ClosureReason)).Inc()
		if lost := lease.Status.Lost; lost != nil {
			all := float64(lost.GPUSeconds + lost.OthersGPUSeconds)
			metrics.LostGPUSeconds.WithLabelValues(string(lease.Status.Cause)).Add(all)
		}
		l.lost(l.book.SetLease(lease))
		closed[i] = lease
		return nil
	})
	return slices.DeleteFunc(closed, func(l *rqv1.Lease) bool { return l == nil }), err
}
