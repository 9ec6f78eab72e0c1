package controllers

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/metrics"
)

// leaseCloser closes Leases.
type leaseCloser struct {
	book   *book.Book
	client client.Client
	// lost is told of Budgets whose records have changed because a Lease is about to go with its namespace.
	lost func(budgets []string)
}

// CloseLeases writes that Leases are closed, unless they were before or have changed.
func (l leaseCloser) CloseLeases(ctx context.Context, ended []*rqv1.Lease) ([]*rqv1.Lease, error) {
	closed := make([]*rqv1.Lease, len(ended))
	err := inParallel(len(ended), func(i int) error {
		lease := ended[i]
		if err := l.client.Status().Update(ctx, lease); err != nil {
			return ignore(err, apierrors.IsNotFound, apierrors.IsConflict)
		}
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
