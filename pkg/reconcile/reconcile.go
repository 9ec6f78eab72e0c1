// Package reconcile brings one Run a decision further: it gathers what is known of it, has pkg/lifecycle decide, and
// carries the decision out, in the one order in which a process may end between any two writes. The scheduler, the
// random worlds of the tests and the simulator share it, each with an API server of its own.
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
)

// Runs reconciles Runs, several at a time, but each only once at a time.
type Runs struct {
	book  *book.Book
	api   API
	rules lifecycle.Rules
	now   func() time.Time
	// objections are what the API server holds against Runs, and exchanges how far those of payers have come, by name of
	// the Run.
	objections, exchanges sync.Map
}

// New returns what reconciles Runs by some rules.
func New(b *book.Book, api API, rules lifecycle.Rules, now func() time.Time) *Runs {
	return &Runs{book: b, api: api, rules: rules, now: now}
}

// Outcome is what is to happen to a Run later, although nothing tells of it.
type Outcome struct {
	// After is when to look at it again, and Retry when to plan it again; 0 for never.
	After, Retry time.Duration
	// Unsaid is why the API server refuses a status that was to be written before pods went, which went all the same, or
	// that was to say that the Run runs, which does not.
	Unsaid error
	// Unrepaid is why the API server refuses that two pods of the Run exchange payers; it is tried again later.
	Unrepaid error
}

// Reconcile brings one Run a decision further. What the outcome says holds also beside an error: what is due is due
// whatever has been refused. Decided is told of the decision; nil for nobody.
func (r *Runs) Reconcile(ctx context.Context, objects book.Objects,
	decided func(lifecycle.Observed, lifecycle.Decision)) (Outcome, error) {
	again, refusal, unpaid := r.repay(ctx, &objects)
	if unpaid != nil {
		out, err := r.deleteMeanwhile(ctx, objects)
		return out, errors.Join(unpaid, err)
	}
	o, unreserved, err := r.observe(ctx, objects)
	if err != nil {
		return Outcome{}, err
	}
	d := lifecycle.Decide(o)
	if decided != nil {
		decided(o, d)
	}
	out, err := r.CarryOut(ctx, o, d)
	out.After, out.Unrepaid = lifecycle.Soonest(out.After, again), refusal
	return out, errors.Join(unreserved, err)
}

// observe adds what the book knows of a Run to what caches hold of it, and brings its Reservations to where they
// should stand. One that is refused, which is unreserved, keeps nothing else from being decided.
func (r *Runs) observe(ctx context.Context, objects book.Objects) (o lifecycle.Observed, unreserved, err error) {
	for {
		if objects.Run != nil {
			r.book.Assess(objects.Run.UID, r.now())
		}
		o, err := r.See(objects)
		if err != nil {
			return o, nil, err
		}
		write := lifecycle.Reserve(o)
		if write == nil {
			return o, nil, nil
		}
		written, err := r.api.WriteReservation(ctx, write)
		if err != nil || written == nil {
			return o, err, nil
		}
		others := slices.DeleteFunc(slices.Clone(o.Reservations), func(r *rqv1.Reservation) bool {
			return r.Name == written.Name
		})
		objects.Reservations = append(others, written)
	}
}

// See adds what the book knows of a Run to what caches hold of it, and writes nothing.
func (r *Runs) See(objects book.Objects) (lifecycle.Observed, error) {
	o := lifecycle.Observed{Objects: objects, Rules: r.rules, Now: r.now()}
	if held, ok := r.objections.Load(o.Name); ok && o.Run != nil && held.(objection).run == o.Run.UID {
		against := held.(objection)
		o.Problem, o.Unsaid, o.Unended = against.problem.text, against.unsaid, against.unended.text
	}
	look, known := r.book.Look(o.Objects)
	o.Look = look
	if !known {
		return o, fmt.Errorf("the book has not seen Run %s yet", o.Name)
	}
	return o, nil
}

// CarryOut makes the writes of a decision. Whatever happens between two of them, who comes after decides the rest
// from what has been written:
//   - the status comes first where nothing would tell any more, without the pods, what it says; one that is refused for
//     what it says would be the next time too, and keeps no pod from going, nor does one that is not written for long;
//   - the PodDisruptionBudget comes before any pod that replaces a rank, and keeps nothing else from being done;
//   - pods go next; one that the API server does not let go keeps nothing else from being done;
//   - pods that replace lost ranks are made before the Leases close that tell of the loss; that they cannot be made
//     keeps no other Lease open;
//   - other pods are made once their ranks' earlier Leases, which number them, are closed and the Service is there;
//   - any other status comes last, and says what has been done. A Run that leaves no room to say that it runs does not:
//     its time would never be over, and nobody could cut it.
func (r *Runs) CarryOut(ctx context.Context, o lifecycle.Observed, d lifecycle.Decision) (Outcome, error) {
	out := Outcome{After: d.After, Retry: d.Retry}
	waits, untold := r.tellFirst(ctx, &o, &d, &out)
	if waits {
		return out, untold
	}
	unguarded := r.guard(ctx, &o, &d)
	if unguarded != nil && !d.Evictable {
		d = d.WithoutReplacements()
	}
	behind, undeleted := r.deletePods(ctx, d.Delete)
	r.noteUnended(&o, undeleted)
	if away(undeleted) || behind {
		return out, errors.Join(untold, unguarded, undeleted) // what comes to the caches looks again
	}
	err := r.goOn(ctx, &o, &d, &out)
	if r.isOver(&o) {
		out.After = lifecycle.Soonest(out.After, time.Second)
	}
	return out, errors.Join(untold, unguarded, undeleted, err)
}

// tellFirst writes the status that is to be told before pods go. It reports whether they wait until it is, and what is
// to be tried again.
func (r *Runs) tellFirst(ctx context.Context, o *lifecycle.Observed, d *lifecycle.Decision, out *Outcome) (waits bool,
	untold error) {
	if !d.TellFirst() {
		return false, nil
	}
	err := r.api.WriteStatus(ctx, o, d.Status)
	if err != nil && !refuses(err) {
		untold = err
	}
	if untold != nil && r.mayYetBeTold(o) {
		return true, untold
	}
	out.Unsaid, d.Status = err, nil
	return false, untold
}

// goOn makes the writes that follow once pods have been deleted. Pods that cannot be given ranks keep nothing back but
// what tells that those ranks are lost.
func (r *Runs) goOn(ctx context.Context, o *lifecycle.Observed, d *lifecycle.Decision, out *Outcome) error {
	before := said{}
	if o.Run != nil {
		before = r.heldAgainst(o).problem
	}
	untaken := r.takeIn(ctx, d)
	if untaken != nil {
		*d = d.WithoutReplacements()
	}
	err := errors.Join(untaken, r.outlive(ctx, o, d.Outlived), r.finish(ctx, o, d, out))
	r.noteUntaken(o, before, untaken)
	return err
}

// finish makes the writes that follow once pods of others have been taken in.
func (r *Runs) finish(ctx context.Context, o *lifecycle.Observed, d *lifecycle.Decision, out *Outcome) error {
	delayed, problem := r.replace(ctx, o, d)
	if delayed != nil {
		*d = d.WithoutReplacements() // the Leases of lost ranks still tell of the loss
	}
	closed, behind, err := r.closeLeases(ctx, o, d.Close)
	if behind {
		out.After = lifecycle.Soonest(out.After, behindRest)
	}
	switch {
	case err != nil || behind:
		return errors.Join(delayed, err)
	case delayed != nil:
		return r.delayed(ctx, o, d.Status, delayed)
	}
	if problem == nil {
		problem = r.create(ctx, o, d, closed)
	}
	problem = r.tell(o, problem)
	if d.Status != nil {
		err := r.api.WriteStatus(ctx, o, d.Status)
		switch {
		case TooLarge(err) && d.Starts(o.Run):
			out.Unsaid, out.After = err, lifecycle.Soonest(out.After, unsaidRest)
			r.objections.Store(o.Name, objection{run: o.Run.UID, problem: said{notTaken("status", err), o.Now},
				unsaid: o.Now.Add(unsaidRest)})
			_, err = r.deletePods(ctx, lifecycle.Withdrawn(*o))
			return err
		case err != nil:
			return err
		}
	}
	if len(d.Words) > 0 {
		problem = errors.Join(problem, r.api.TellPods(ctx, d.Words))
	}
	if d.Expire {
		return r.api.DeleteRun(ctx, o.Run)
	}
	return problem
}

// replace makes the pods that replace lost ranks. Delayed is why they cannot be made for now, and refused why not at
// all.
func (r *Runs) replace(ctx context.Context, o *lifecycle.Observed, d *lifecycle.Decision) (delayed, refused error) {
	if err := r.numberEpochs(ctx, o.Run, d.Replace, nil, false); err != nil {
		return err, nil
	}
	err := r.createPods(ctx, d.Replace)
	if Passes(err) {
		return err, nil
	}
	return nil, err
}

// takeIn gives ranks to pods that others have made, and takes them from those that give theirs up.
func (r *Runs) takeIn(ctx context.Context, d *lifecycle.Decision) error {
	if len(d.Release) > 0 {
		if err := r.api.ReleasePods(ctx, d.Release); err != nil {
			return err
		}
	}
	if len(d.Adopt) == 0 {
		return nil
	}
	return r.api.AdoptPods(ctx, d.Adopt)
}

// guard writes a Run's PodDisruptionBudget. That one is not taken, or that this process may not write it, is no error:
// it would be so the next time too.
func (r *Runs) guard(ctx context.Context, o *lifecycle.Observed, d *lifecycle.Decision) (err error) {
	if o.Run == nil {
		return nil
	}
	known := d.Evictable
	switch {
	case d.Guard != nil:
		if !d.Evictable {
			r.book.Raises(o.Run.UID)
		}
		known, err = true, r.api.WriteGuard(ctx, d.Guard)
	case d.Unguard != nil:
		known, err = true, r.api.DropGuard(ctx, d.Unguard)
	case len(o.Guards) > 0 && r.book.Raising(o.Run.UID):
		known = true
	}
	if known && err == nil {
		r.book.Evictable(o.Run.UID, d.Evictable)
	}
	if !Passes(err) || apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// behindRest is how long it takes at most until a Run is looked at again of whose nodes a cache did not know what the
// API server did: by then there may be nothing to tell any more.
const behindRest = 5 * time.Second

// unsaidRest is how long a Run gets no pods whose status could not say that it runs.
const unsaidRest = 5 * time.Minute

// create makes what a Run lacks, the Service first. The ledger need not be read for one that has had no Lease.
func (r *Runs) create(ctx context.Context, o *lifecycle.Observed, d *lifecycle.Decision, closed []*rqv1.Lease) error {
	if d.Service != nil {
		if err := r.api.CreateService(ctx, d.Service); err != nil {
			return err
		}
	}
	if err := r.numberEpochs(ctx, o.Run, d.Create, closed, !o.HadLease); err != nil {
		return err
	}
	spares := slices.IndexFunc(d.Create, func(pod *corev1.Pod) bool {
		return pod.Labels[rqv1.LabelRole] == string(rqv1.RoleSpare)
	})
	if spares < 0 {
		spares = len(d.Create)
	}
	if err := r.createPods(ctx, d.Create[:spares]); err != nil {
		return err
	}
	return r.createPods(ctx, d.Create[spares:]) // a Run that runs lacks its ranks more
}

// tell has the book know what became of a Run's pods, and returns what is to be tried again.
func (r *Runs) tell(o *lifecycle.Observed, problem error) error {
	switch {
	case problem == nil || o.Run == nil:
	case Passes(problem):
		r.book.NotMade(o.Run.UID, lifecycle.Shortened(first(problem).Error(), longestProblem))
	case r.book.NotTaken(o.Run.UID, objectionTo(problem), o.Now):
		problem = nil
	}
	r.note(o, problem)
	return problem
}

// delayed tells of the replacements of lost ranks that they cannot be made, once that has lasted.
func (r *Runs) delayed(ctx context.Context, o *lifecycle.Observed, status *rqv1.RunStatus, problem error) error {
	r.note(o, problem)
	if o.Problem != "" && status != nil {
		return errors.Join(problem, r.api.WriteStatus(ctx, o, status))
	}
	return problem
}

func (r *Runs) createPods(ctx context.Context, pods []*corev1.Pod) error {
	if len(pods) == 0 {
		return nil
	}
	return r.api.CreatePods(ctx, pods)
}
