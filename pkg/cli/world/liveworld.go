// Package world reads what the scheduler decides from, so that commands can say what it would decide.
package world

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/group"
	"github.com/davidlangworthy/jobtree/pkg/published"
)

// SchedulerNamespace is where the scheduler and its configuration are installed.
const SchedulerNamespace = "jobtree-system"

// LiveBook reads the objects that the scheduler decides from into a book of its own, which decides as the scheduler
// does. unread says what had to be guessed.
func LiveBook(ctx context.Context, c client.Client, now time.Time) (b *book.Book, unread []string,
	err error) {
	args, guessed, err := SchedulerArgs(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	if guessed != "" {
		unread = append(unread, guessed)
	}
	b = book.New(args)
	var nodes corev1.NodeList
	var pods corev1.PodList
	var budgets rqv1.BudgetList
	var runs rqv1.RunList
	var leases rqv1.LeaseList
	var reservations rqv1.ReservationList
	holding := client.MatchingFieldsSelector{Selector: fields.ParseSelectorOrDie(
		"status.phase!=Succeeded,status.phase!=Failed")}
	open := client.MatchingFieldsSelector{Selector: fields.OneTermNotEqualSelector("status.closed", "true")}
	err = inParallel(func() error { return c.List(ctx, &nodes) },
		func() error { return c.List(ctx, &budgets) },
		func() error { return c.List(ctx, &runs) },
		func() error { return c.List(ctx, &pods, holding) },
		func() error { return c.List(ctx, &leases, open) },
		func() error { return c.List(ctx, &reservations) })
	if err != nil {
		return nil, nil, err
	}
	each(nodes.Items, b.SetNode)
	each(budgets.Items, b.Budgets.SetBudget)
	each(runs.Items, b.SetRun)
	each(pods.Items, func(pod *corev1.Pod) { b.SetPod(pod); b.SetMember(pod) })
	each(leases.Items, func(l *rqv1.Lease) { b.SetLease(l) })
	each(reservations.Items, b.SetReservation)
	for i := range budgets.Items {
		if err := spendAs(b, &budgets.Items[i]); err != nil {
			return nil, nil, err
		}
	}
	b.Budgets.RefreshBudgets(now)
	b.TakeOver(now)
	return b, unread, nil
}

// inParallel reads several things at once: the API server encodes some while others are decoded. It returns the first
// error in order.
func inParallel(reads ...func() error) error {
	errs := make([]error, len(reads))
	var all sync.WaitGroup
	for i, read := range reads {
		all.Go(func() { errs[i] = read() })
	}
	all.Wait()
	return cmp.Or(errs...)
}

// each hands every item of a list to a function.
func each[T any](items []T, set func(*T)) {
	for i := range items {
		set(&items[i])
	}
}

// spendAs has a book know what a Budget has spent, as its status tells it, beyond what the open GPU leases have.
func spendAs(b *book.Book, of *rqv1.Budget) error {
	if of.Status.ObservedAt == nil {
		return nil
	}
	record := budget.Record{Budget: of.Name, Envelopes: map[string][]budget.Bucket{}, Windows: map[string]int64{}}
	open := b.Budgets.Spent(of.Status.ObservedAt.Time)
	for i := range of.Status.Envelopes {
		s := &of.Status.Envelopes[i]
		if s.GPUHours == nil {
			continue
		}
		spent, err := budget.ParseSpend(s.GPUHours.Spent)
		if err != nil {
			return fmt.Errorf("status of Budget %s, envelope %s: %w", of.Name, s.Name, err)
		}
		settled := max(0, spent-open[budget.Key{Budget: of.Name, Envelope: s.Name}])
		bucket := budget.OwnBucket(windowStart(of, s.Name), settled)
		record.Envelopes[s.Name], record.Windows[s.Name] = []budget.Bucket{bucket}, bucket.Start
	}
	b.Budgets.SetRecord(record)
	return nil
}

// windowStart is when an envelope's window began, Unix time in seconds; 0 for ever.
func windowStart(b *rqv1.Budget, envelope string) int64 {
	for i := range b.Spec.Envelopes {
		if e := &b.Spec.Envelopes[i]; e.Name == envelope && e.Start != nil {
			return e.Start.Unix()
		}
	}
	return 0
}

// GroupRules are by which rules pods are groups, as the scheduler's configuration has them.
func GroupRules(ctx context.Context, c client.Client) (group.Rules, error) {
	args, _, err := SchedulerArgs(ctx, c)
	if err != nil {
		return group.Rules{}, err
	}
	return group.RulesOf(args), nil
}

// SchedulerArgs returns the arguments of the scheduler's plugin, as the scheduler has published them, or else the
// defaults, which guessed says.
func SchedulerArgs(ctx context.Context, c client.Client) (args *config.Args, guessed string, err error) {
	data, lacks, err := public(ctx, c)
	if err != nil {
		return nil, "", err
	}
	if lacks == "" {
		args, err = published.Args(data)
		return args, "", err
	}
	args, err = config.Parse(nil)
	return args, "the scheduler's configuration: its defaults are assumed; " + lacks, err
}

// GPUTypes returns the types of GPU that there are, sorted, as the scheduler has published them; none where that may
// not be read.
func GPUTypes(ctx context.Context, c client.Client) ([]string, error) {
	data, lacks, err := public(ctx, c)
	if err != nil || lacks != "" {
		return nil, err
	}
	fleet, err := published.FleetOf(data)
	if err != nil {
		return nil, err
	}
	var types []string
	for i := range fleet.Domains {
		types = append(types, fleet.Domains[i].GPUType)
	}
	slices.Sort(types)
	return slices.Compact(types), nil
}

// Published returns what the scheduler has published of its configuration and of the fleet; nil for a configuration
// that may not be read, or has not been published.
func Published(ctx context.Context, c client.Client) (args *config.Args, fleet published.Fleet, err error) {
	data, lacks, err := public(ctx, c)
	if err != nil || lacks != "" {
		return nil, fleet, err
	}
	if args, err = published.Args(data); err != nil {
		return nil, fleet, err
	}
	fleet, err = published.FleetOf(data)
	return args, fleet, err
}

// public returns what the scheduler has published; lacks says why nothing could be read of it.
func public(ctx context.Context, c client.Client) (data map[string]string, lacks string, err error) {
	var of corev1.ConfigMap
	err = c.Get(ctx, client.ObjectKey{Namespace: SchedulerNamespace, Name: published.ConfigMap}, &of)
	switch {
	case apierrors.IsNotFound(err):
		return nil, "it has not published it yet", nil
	case apierrors.IsForbidden(err):
		return nil, "ask an administrator for the Role jobtree-public-reader in " + SchedulerNamespace, nil
	}
	return of.Data, "", err
}
