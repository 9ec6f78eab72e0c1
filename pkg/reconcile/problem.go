package reconcile

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
)

// NameTaken is the error for a name that something else has.
type NameTaken struct{ Kind, Name string }

func (e NameTaken) Error() string {
	return fmt.Sprintf("%s %s exists and does not belong to this Run; delete it, or give the Run another name", e.Kind,
		e.Name)
}

// Passes reports whether a failure to make pods passes by itself: the API server, or this process, was not up to it.
// What it holds against the pods stays.
func Passes(problem error) bool {
	taken, cause := NameTaken{}, first(problem)
	return problem != nil && !errors.As(problem, &taken) && (!apierrors.IsForbidden(cause) || unauthorized(cause)) &&
		!apierrors.IsInvalid(cause) && !badRequest(cause) && !TooLarge(cause)
}

// Refused reports whether a write failed for the object that it is of, or for a webhook that is asked about such
// objects, and not since the API server is away: others may go well meanwhile.
func Refused(err error) bool {
	return err != nil && (!Passes(err) || strings.Contains(err.Error(), "failed calling webhook"))
}

// away reports whether one of errors that were joined is no refusal.
func away(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return slices.ContainsFunc(joined.Unwrap(), away)
	}
	return err != nil && !Refused(err)
}

// unauthorized reports whether this process may not make objects of a kind at all, as in the moments when an API server
// begins and has not read its roles. It names no object then; what is held against one names it.
func unauthorized(err error) bool {
	var said apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &said) {
		return false
	}
	details := said.Status().Details
	return details != nil && details.Kind != "" && details.Name == ""
}

// badRequest reports whether a request is refused for what it is, as by a webhook that gives neither code nor reason.
func badRequest(err error) bool {
	var said apierrors.APIStatus
	return errors.As(err, &said) && said.Status().Code == http.StatusBadRequest
}

// refuses reports whether the API server refuses a status for what it is, so that it would the next time too.
func refuses(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || TooLarge(err)
}

// TooLarge reports whether an object is too large to be stored. That it is for etcd only the message says.
func TooLarge(err error) bool {
	return apierrors.IsRequestEntityTooLargeError(err) ||
		err != nil && strings.Contains(err.Error(), "request is too large")
}

// objection is what the API server holds against one Run, not against a later one of its name.
type objection struct {
	run     types.UID
	problem said
	// unended is why it does not let the first of those pods go that were to; empty when it does.
	unended said
	// delayed is since when the Run's pods cannot be made for what passes by itself; zero when they can.
	delayed time.Time
	// untold is since when a status is not written that is to be told first; zero when it is, or there is none.
	untold time.Time
	// unsaid is until when the Run gets no pods since its status could not say that it runs; zero otherwise.
	unsaid time.Time
}

// said is why something is refused, as it is told, and since when; empty where nothing is.
type said struct {
	text  string
	since time.Time
}

// saidFor is for how long a refusal is told as it was when it says something else: it may name ports and times, and
// each text is a write of the status, after which it is tried again.
const saidFor = time.Minute

// then returns what is told once it is refused with a text.
func (s said) then(text string, now time.Time) said {
	switch {
	case text == "":
		return said{}
	case text == s.text, s.text != "" && now.Sub(s.since) < saidFor && !s.since.After(now):
		return s
	}
	return said{text, now}
}

// longestProblem bounds what is told of a problem, in bytes: an error quotes what it is about, such as a whole
// template.
const longestProblem = 900

// notTaken says what of a Run the API server does not take, and why.
func notTaken(what string, why error) string {
	return fmt.Sprintf("the API server rejects the Run's %s: %s", what,
		lifecycle.Shortened(why.Error(), longestProblem))
}

// refusedFor says what the API server holds against a Run's pods.
func refusedFor(problem error) string {
	taken := NameTaken{}
	if errors.As(problem, &taken) {
		return taken.Error()
	}
	return notTaken("pods", first(problem))
}

// toldAfter is how long pods have not been made when it is told why, although that may pass by itself: mostly it has
// by then.
const toldAfter = 10 * time.Second

// note remembers what the API server holds against a Run's pods, so that the next decision tells it.
func (r *Runs) note(o *lifecycle.Observed, problem error) {
	switch {
	case o.Run != nil && o.Now.Before(o.Unsaid):
	case o.Run == nil:
		r.objections.Delete(o.Name)
	case problem == nil:
		r.hold(o, objection{unended: r.heldAgainst(o).unended})
	case !Passes(problem) || unauthorized(first(problem)):
		was := r.heldAgainst(o)
		r.hold(o, objection{problem: was.problem.then(refusedFor(problem), o.Now), unended: was.unended})
	default:
		r.noteDelay(o, problem)
	}
}

// hold remembers what the API server holds against a Run.
func (r *Runs) hold(o *lifecycle.Observed, held objection) {
	held.run = o.Run.UID
	if held == (objection{run: held.run}) {
		r.objections.Delete(o.Name)
		return
	}
	r.objections.Store(o.Name, held)
}

// noteUnended remembers why pods are still there that were to go, so that the next decision tells it.
func (r *Runs) noteUnended(o *lifecycle.Observed, undeleted error) {
	if o.Run == nil {
		return
	}
	held, text := r.heldAgainst(o), ""
	if refusal := firstOf(undeleted, Refused); refusal != nil {
		text = lifecycle.Shortened(refusal.Error(), longestProblem)
	}
	held.unended = held.unended.then(text, o.Now)
	r.hold(o, held)
}

// noteUntaken remembers why the API server does not let pods that others have made get their ranks, so that the next
// decision tells it. Before is what was held against them before this one.
func (r *Runs) noteUntaken(o *lifecycle.Observed, before said, untaken error) {
	if refusal := firstOf(untaken, Refused); refusal != nil && o.Run != nil {
		held := r.heldAgainst(o)
		held.problem = before.then("the API server refuses the labels by which the group's pods get their ranks: "+
			lifecycle.Shortened(refusal.Error(), longestProblem), o.Now)
		r.hold(o, held)
	}
}

// longestUntold is how long a status that is to be told first is tried to be written before what it tells of is done.
const longestUntold = 10 * time.Second

// mayYetBeTold reports whether a status that could not be written is waited for: not for long.
func (r *Runs) mayYetBeTold(o *lifecycle.Observed) bool {
	held := r.heldAgainst(o)
	if held.untold.IsZero() || held.untold.After(o.Now) {
		held.untold = o.Now
		r.objections.Store(o.Name, held)
	}
	return o.Now.Sub(held.untold) < longestUntold
}

// heldAgainst returns what the API server holds against a Run by now.
func (r *Runs) heldAgainst(o *lifecycle.Observed) objection {
	if held, ok := r.objections.Load(o.Name); ok && held.(objection).run == o.Run.UID {
		return held.(objection)
	}
	return objection{run: o.Run.UID}
}

// isOver reports whether nothing is held against a Run any more that a decision has told: the next one says so.
func (r *Runs) isOver(o *lifecycle.Observed) bool {
	if o.Run == nil {
		return false
	}
	held := r.heldAgainst(o)
	return o.Problem != "" && held.problem.text == "" || o.Unended != "" && held.unended.text == ""
}

// noteDelay remembers since when a Run's pods cannot be made, and why, once that is to be told. What was held against
// them before may still be.
func (r *Runs) noteDelay(o *lifecycle.Observed, problem error) {
	held := r.heldAgainst(o)
	switch {
	case held.delayed.IsZero():
		held.delayed = o.Now
	case o.Now.Sub(held.delayed) >= toldAfter:
		held.problem = held.problem.then("the Run's pods could not be created yet: "+
			lifecycle.Shortened(first(problem).Error(), longestProblem), o.Now)
	}
	r.objections.Store(o.Name, held)
}

// first returns the first of errors that were joined: a gang's pods fail alike.
func first(err error) error { return firstOf(err, func(error) bool { return true }) }

// firstOf returns the first of errors that were joined that is of a kind; nil for none.
func firstOf(err error, kind func(error) bool) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			if found := firstOf(e, kind); found != nil {
				return found
			}
		}
		return nil
	}
	if err == nil || !kind(err) {
		return nil
	}
	return err
}
