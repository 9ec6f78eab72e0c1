package controllers

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// budgetPeriod is how often the usage of Budgets is written, at most: a bound on writes, whatever happens in between.
const budgetPeriod = 2 * time.Second

// reportBudgets keeps the status of Budgets current, with one write per Budget and period where something has changed.
func (c *Controllers) reportBudgets(ctx context.Context) {
	for {
		for _, b := range c.budgets() {
			if err := c.reportBudget(ctx, b); err != nil {
				klog.FromContext(ctx).V(2).Info("Budget status is to be written again", "budget", b.Name, "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-c.clock.After(budgetPeriod):
		}
	}
}

func (c *Controllers) budgets() []*rqv1.Budget {
	var out []*rqv1.Budget
	for _, o := range c.watches.budgets.GetStore().List() {
		out = append(out, o.(*rqv1.Budget))
	}
	slices.SortFunc(out, func(x, y *rqv1.Budget) int { return strings.Compare(x.Name, y.Name) })
	return out
}

func (c *Controllers) reportBudget(ctx context.Context, b *rqv1.Budget) error {
	next := b.DeepCopy()
	next.Status.ObservedGeneration = b.Generation
	next.Status.Envelopes = c.book.BudgetStatus(b)
	if equality.Semantic.DeepEqual(b.Status, next.Status) {
		return nil
	}
	return ignore(c.client.Status().Update(ctx, next), apierrors.IsNotFound, apierrors.IsConflict)
}
