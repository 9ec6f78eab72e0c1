package controllers

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

const (
	// Namespace holds the scheduler and the records of settled Leases.
	Namespace = "jobtree-system"
	// page is how many Leases are read at a time.
	page = 500
)

// readLedger reads the records and all Leases from the API server itself: a predecessor may have written some that the
// watch has not brought yet, and closed ones are not watched.
func (c *Controllers) readLedger(ctx context.Context) error {
	versions, through, err := c.readRecords(ctx)
	if err != nil {
		return err
	}
	options := &client.ListOptions{Limit: page}
	for {
		leases := &rqv1.LeaseList{}
		if err := c.client.List(ctx, leases, options); err != nil {
			return fmt.Errorf("reading the Leases: %w", err)
		}
		for i := range leases.Items {
			l := &leases.Items[i]
			c.book.SetLease(l)
			if l.Status.Closed && l.Status.Ended.Unix() <= through[l.Spec.Payer.Budget] {
				c.settled.add(settledLease{client.ObjectKeyFromObject(l), l.Spec.Payer.Budget}) // a predecessor did not come to delete it
			}
		}
		if options.Continue = leases.Continue; options.Continue == "" {
			return c.unchanged(ctx, versions)
		}
	}
}

// lookUp finds out when Leases ended that are no longer among the open ones. A Lease that is gone altogether, with its
// namespace, ended now.
func (c *Controllers) lookUp(ctx context.Context, leases []types.NamespacedName) {
	for _, name := range leases {
		lease := &rqv1.Lease{}
		err := c.client.Get(ctx, name, lease)
		switch {
		case apierrors.IsNotFound(err):
			c.settled.lost(c.book.LeaseLost(name, c.clock.Now()))
		case err != nil:
			klog.FromContext(ctx).Error(err, "Looking up when a Lease ended", "lease", name)
			time.AfterFunc(time.Second, func() { c.lookUp(ctx, []types.NamespacedName{name}) })
		default:
			c.settled.lost(c.book.SetLease(lease))
			c.changed(runOfLease(lease))
		}
	}
}
