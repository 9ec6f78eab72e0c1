package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// deletions is how many Leases go at most each time the ledger is settled.
const deletions = 1000

// settled is what is still to be written of the settlement of closed Leases. Records come first: a Lease goes only once
// what it spent is stored, and a Lease that is in a record counts no more, so that a crash in between changes nothing.
type settled struct {
	mu      sync.Mutex
	budgets map[string]bool // whose records have changed
	leases  []types.NamespacedName
	hurry   chan struct{} // holds one when something is to be written at once
}

func (s *settled) changed(budgets []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range budgets {
		s.budgets[b] = true
	}
}

// lost notes records that have changed because Lease objects are gone already: until they are written, they are nowhere
// else.
func (s *settled) lost(budgets []string) {
	if len(budgets) == 0 {
		return
	}
	s.changed(budgets)
	select {
	case s.hurry <- struct{}{}:
	default: // it is on its way
	}
}

func (s *settled) add(leases ...types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases = append(s.leases, leases...)
}

// take returns everything that is to be written, which is the caller's from then on.
func (s *settled) take() (budgets []string, leases []types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	budgets, leases = slices.Sorted(maps.Keys(s.budgets)), s.leases
	s.budgets, s.leases = map[string]bool{}, nil
	return budgets, leases
}

// settleLedger folds closed Leases that have reached the age of retention into records, and deletes them (R9).
func (c *Controllers) settleLedger(ctx context.Context) {
	retention := c.args.LedgerRetention.Duration
	period := max(time.Second, min(time.Minute, retention/4))
	for {
		through := c.clock.Now().Add(-retention)
		for _, payer := range c.book.Payers() {
			if folded := c.book.Settle(payer, through); len(folded) > 0 {
				c.settled.changed([]string{payer})
				c.settled.add(folded...)
			}
		}
		c.storeSettled(ctx)
		select {
		case <-ctx.Done():
			return
		case <-c.settled.hurry:
		case <-c.clock.After(period):
		}
	}
}

// storeSettled writes the records that have changed and then deletes the Leases in them. What fails is left for the next
// time.
func (c *Controllers) storeSettled(ctx context.Context) {
	budgets, leases := c.settled.take()
	later := leases
	defer func() { c.settled.add(later...) }()
	for i, b := range budgets {
		if err := c.writeRecord(ctx, b); err != nil {
			klog.FromContext(ctx).Error(err, "Storing what a Budget's settled Leases have spent", "budget", b)
			c.settled.changed(budgets[i:])
			return
		}
	}
	n := min(deletions, len(leases))
	later = leases[n:]
	failed := make([]bool, n)
	err := inParallel(n, func(i int) error {
		err := c.deleteLease(ctx, leases[i])
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
}

func (c *Controllers) deleteLease(ctx context.Context, name types.NamespacedName) error {
	if !c.holds() {
		return fmt.Errorf("this process does not lead at the moment")
	}
	lease := &rqv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	return ignore(c.client.Delete(ctx, lease), apierrors.IsNotFound)
}

// writeRecord stores the record of a Budget in its ConfigMap.
func (c *Controllers) writeRecord(ctx context.Context, of string) error {
	if !c.holds() {
		return fmt.Errorf("this process does not lead at the moment")
	}
	text, err := json.Marshal(c.book.Record(of))
	if err != nil {
		return err
	}
	stored := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "settled-" + of, Labels: map[string]string{labelRecord: "true"}},
		Data:       map[string]string{recordKey: string(text)},
	}
	maps := c.kube.CoreV1().ConfigMaps(Namespace)
	if _, err = maps.Update(ctx, stored, metav1.UpdateOptions{}); apierrors.IsNotFound(err) {
		_, err = maps.Create(ctx, stored, metav1.CreateOptions{})
	}
	return err
}
