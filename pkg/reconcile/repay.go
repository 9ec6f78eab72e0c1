package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// repaying is how far a Run has come with an exchange of payers that was not written as a whole.
type repaying struct {
	// first is the Lease of which it is not known whether it is written, or what follows from it; none when it is known.
	first types.NamespacedName
	// rests is until when the Run exchanges no payers, since the API server has refused that.
	rests time.Time
}

// repaidRest is how long a Run exchanges no payers of which the API server has refused that, as one does whose
// definitions of kinds are older than this process.
const repaidRest = 5 * time.Minute

// exchangesAtOnce is how many pairs of a Run's pods exchange payers before all else of it is looked at again: a lost
// rank does not wait for the money of hundreds.
const exchangesAtOnce = 8

// repay writes the exchanges of payers that have been begun in a Run, by this process or by one before, and those that
// are due. The Leases that were observed are as they are then. As long as it fails it is not known who pays for what,
// and no Lease of the Run may close. It returns when to look again, 0 for when something comes up, and why an exchange
// is refused.
func (r *Runs) repay(ctx context.Context, objects *book.Objects) (after time.Duration, refusal, err error) {
	held, _ := r.exchanges.Load(objects.Name)
	before, _ := held.(repaying)
	if before.first.Name != "" {
		is, err := r.api.ReadLease(ctx, before.first)
		if err != nil {
			return 0, nil, err
		}
		objects.Leases = joined(objects.Leases, is)
	}
	left, now := rank.Unfinished(objects.Leases), r.now()
	if len(left) == 0 && objects.Run != nil {
		if rest := before.rests.Sub(now); rest > 0 {
			return rest, nil, nil
		}
		left = r.due(objects, now) // what was begun and has not happened is decided anew: its Leases may be closed by now
	}
	for i := range left {
		x := &left[i]
		refusal, err := r.exchange(ctx, x)
		if err != nil {
			r.exchanges.Store(objects.Name, repaying{first: x.Now[0].Key()})
			return 0, nil, err
		}
		if refusal != nil {
			r.exchanges.Store(objects.Name, repaying{rests: now.Add(repaidRest)})
			return repaidRest, refusal, nil
		}
		objects.Leases = exchanged(x, objects.Leases)
	}
	r.exchanges.Delete(objects.Name)
	if len(left) == exchangesAtOnce {
		after = time.Millisecond // there may be more
	}
	return after, nil, nil
}

// joined returns some open Leases, and one that the caches may lack, if it is open.
func joined(leases []*rqv1.Lease, with *rqv1.Lease) []*rqv1.Lease {
	if with == nil || with.Status.Closed ||
		slices.ContainsFunc(leases, func(l *rqv1.Lease) bool { return l.Key() == with.Key() }) {
		return leases
	}
	return append(slices.Clone(leases), with)
}

// due returns the next of the exchanges that are due in a Run, as far as the caches hold the Leases.
func (r *Runs) due(objects *book.Objects, now time.Time) []rank.Exchange {
	if !slices.ContainsFunc(objects.Leases, func(l *rqv1.Lease) bool { return l.Relation() != rqv1.RelationOwn }) {
		return nil // most borrow nothing, and the book need not be asked
	}
	return exchangesOf(r.book.Exchanges(objects.Run.UID), objects.Leases, now)
}

// exchangesOf returns the exchanges of the first pairs of which the caches hold both Leases.
func exchangesOf(pairs [][2]types.NamespacedName, leases []*rqv1.Lease, now time.Time) []rank.Exchange {
	if len(pairs) == 0 {
		return nil
	}
	by := map[types.NamespacedName]*rqv1.Lease{}
	for _, l := range leases {
		by[l.Key()] = l
	}
	var out []rank.Exchange
	for _, pair := range pairs {
		if one, other := by[pair[0]], by[pair[1]]; one != nil && other != nil && len(out) < exchangesAtOnce {
			out = append(out, rank.Exchanged(one, other, now))
		}
	}
	return out
}

// exchange writes an exchange. Until its first Lease is known to be written it may not have happened; from then on it
// has, as that Lease says. One of which that is refused has not.
func (r *Runs) exchange(ctx context.Context, x *rank.Exchange) (refusal, err error) {
	is, err := r.api.OpenLease(ctx, x.Now[0])
	if err != nil {
		if refusesLease(err) {
			return err, nil
		}
		return nil, err
	}
	switch {
	case is.Status.Closed || !rank.Continues(is, x.Was[0]):
		return fmt.Errorf("Lease %s/%s is of something else", is.Namespace, is.Name), nil
	case !x.Begin(is):
		return nil, fmt.Errorf("an exchange of payers has been begun otherwise: Lease %s/%s", is.Namespace, is.Name)
	}
	r.book.SetLease(is)
	if x.Now[1] != nil {
		if err := r.openOther(ctx, x); err != nil {
			return nil, err
		}
	}
	_, err = r.api.CloseLeases(ctx, x.Closed())
	return nil, err
}

// openOther writes the second Lease of an exchange that has happened. It is not written in a namespace that goes, and
// the pod with it.
func (r *Runs) openOther(ctx context.Context, x *rank.Exchange) error {
	is, err := r.api.OpenLease(ctx, x.Now[1])
	switch {
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		r.book.SetLease(r.close(&lifecycle.Closing{Lease: x.Now[1], Reason: rqv1.ClosedDeleted}))
		return nil
	case err != nil:
		return err
	case !rank.Continues(is, x.Was[1]) || !is.Spec.Start.Equal(&x.Now[0].Spec.Start):
		return fmt.Errorf("an exchange of payers cannot be finished: Lease %s/%s is of something else", is.Namespace, is.Name)
	}
	x.Now[1] = is
	return nil
}

// refusesLease reports whether the API server does not take a Lease, or has no namespace for it.
func refusesLease(err error) bool { return refuses(err) || Refused(err) || apierrors.IsNotFound(err) }

// exchanged returns the open Leases of a Run as they are after an exchange.
func exchanged(x *rank.Exchange, leases []*rqv1.Lease) []*rqv1.Lease {
	isIn := func(of [2]*rqv1.Lease) func(*rqv1.Lease) bool {
		return func(l *rqv1.Lease) bool {
			return slices.ContainsFunc(of[:], func(is *rqv1.Lease) bool { return is != nil && is.Name == l.Name })
		}
	}
	out := slices.DeleteFunc(slices.DeleteFunc(slices.Clone(leases), isIn(x.Was)), isIn(x.Now))
	for _, l := range x.Now {
		if l != nil && !l.Status.Closed {
			out = append(out, l)
		}
	}
	return out
}

// deleteMeanwhile has pods go that are to, while it is not known who pays for the Run's: they go whoever does. All else
// of the decision waits, as it does when this process dies after the deletions.
func (r *Runs) deleteMeanwhile(ctx context.Context, objects book.Objects) (out Outcome, err error) {
	o, err := r.See(objects)
	if err != nil {
		return out, err
	}
	d := lifecycle.Decide(o)
	waits, untold := r.tellFirst(ctx, &o, &d, &out)
	if waits {
		return out, untold
	}
	_, undeleted := r.deletePods(ctx, d.Delete)
	return out, errors.Join(untold, undeleted)
}
