package lifecycle

import (
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// follow has a Reservation say what is promised now, and commit to a nonce.
func (r *revision) follow() *Write {
	promise := r.seen.Promise
	next := r.was.DeepCopy()
	promised(&next.Spec, promise)
	next.Spec.EarliestStart = metav1.NewTime(promise.At.Truncate(time.Second))
	if !equality.Semantic.DeepEqual(&next.Spec, &r.was.Spec) {
		return &Write{Verb: Update, Reservation: next, Was: r.was.Spec.EarliestStart.Time}
	}
	commitment := r.seen.Commitments[r.was.UID]
	switch said := r.was.Status.Lottery; {
	case said == nil || said.Commitment == "":
	case commitment == "":
		commitment = said.Commitment // the key is not known at the moment
	case said.Commitment != commitment:
		return r.cancelFor("the lottery key has been replaced, so the published commitment cannot be kept")
	}
	left := max(0, int64(promise.At.Sub(r.seen.Now)/time.Second))
	s := &next.Status
	s.State, s.CountdownSeconds = rqv1.ReservationPending, &left
	if r.seen.Refusal != nil {
		s.Reason = inScope(promise, r.seen.Refusal) + withBrake(r.seen.Refusal.Message, r.seen.Brake)
	}
	s.Forecast = forecastOf(promise)
	s.ConflictSet = steadyConflicts(s.ConflictSet, resolver.Likeliest(promise.Conflicts, rqv1.MostForecastConflicts))
	s.Conflicts = resolver.TotalOf(promise.Conflicts)
	s.Lottery = &rqv1.Lottery{Commitment: commitment, Odds: promise.Odds}
	if !tells(&r.was.Status, s) {
		return nil
	}
	return &Write{Verb: UpdateStatus, Reservation: next}
}

// inScope begins the reason of a Reservation with the GPUs that are missing where the Run is to start; it is empty
// where none are. A refusal for room may say that others are: it is of now, there may be room elsewhere, and its pods
// may not be able to use all that is free. So how many are free is said then, where what is short is the rest.
func inScope(p *forecast.Promise, refusal *plan.Refusal) string {
	short, free, are := p.Slice.Deficit, p.Slice.Free, "are free"
	if short == 0 {
		return ""
	}
	text := fmt.Sprintf("cluster short by %d GPUs in scope", short)
	if short == 1 {
		text = "cluster short by 1 GPU in scope"
	}
	switch {
	case refusal.LacksMoney(), refusal.ShortGPUs == 0, refusal.ShortGPUs == short, short != p.Slice.Wants-free:
		return text + ": "
	case p.Slice.Then && free == 1:
		are = "is to be free by then"
	case p.Slice.Then:
		are = "are to be free by then"
	case free == 1:
		are = "is free"
	}
	return fmt.Sprintf("%s, where %d %s: ", text, free, are)
}

// steadyConflicts returns a conflict set, or the one that a status lists where the odds alone have hardly changed.
func steadyConflicts(was, next []rqv1.Conflict) []rqv1.Conflict {
	if len(was) != len(next) {
		return next
	}
	for i := range next {
		old, is := was[i], next[i]
		by := resolver.Likelihood(is.Probability) - resolver.Likelihood(old.Probability)
		is.Probability = old.Probability
		if is != old || math.Abs(by) > slight {
			return next
		}
	}
	return was
}

func forecastOf(p *forecast.Promise) *rqv1.Forecast {
	return &rqv1.Forecast{DeficitGPUs: int32(p.Slice.Deficit), Scope: p.Slice.Scope, Confidence: p.Confidence,
		Remedies: p.Remedies}
}

// tells reports whether a status says something new: anything but the countdown, which only says how much time was left
// when the status was written.
func tells(was, next *rqv1.ReservationStatus) bool {
	a, b := *was, *next
	a.CountdownSeconds, b.CountdownSeconds = nil, nil
	return !equality.Semantic.DeepEqual(a, b) || was.CountdownSeconds == nil
}

// publish writes what has been decided in two steps: the conflict set that the draw is about, in the slice that the
// Reservation says, and then the nonce, the draws and the cuts (R21). Those who are cut learn of it from there. A
// decision that cannot be carried out is revealed and canceled.
func (r *revision) publish() *Write {
	a := r.seen.Activation
	next := r.was.DeepCopy()
	s := &next.Status
	if a.Promise != nil && s.ActivatedAt == nil {
		promised(&next.Spec, a.Promise)
		if !equality.Semantic.DeepEqual(&next.Spec, &r.was.Spec) {
			return &Write{Verb: Update, Reservation: next}
		}
	}
	if s.Lottery == nil {
		s.Lottery = &rqv1.Lottery{}
	}
	switch {
	case a.Failed:
		s.Lottery.Nonce, s.Cause = hex.EncodeToString(a.Nonce[:]), a.Cause
		write := endOf(next, rqv1.ReservationCanceled, "the Run could not start after all: "+a.Why, r.seen.Now)
		write.Stuck = r.seen.Stuck
		return write
	case s.ActivatedAt == nil:
		at, none := metav1.NewMicroTime(a.At), int64(0)
		s.State, s.Reason = rqv1.ReservationActivating, "its turn has come"
		s.ActivatedAt, s.CountdownSeconds = &at, &none
		s.ConflictSet, s.Conflicts = a.Conflicts, resolver.TotalOf(a.Conflicts)
		if a.Promise != nil {
			s.Forecast = forecastOf(a.Promise)
		}
		s.Lottery = &rqv1.Lottery{Commitment: resolver.Commitment(a.Nonce), ConflictSetDigest: resolver.Digest(a.Conflicts),
			Odds: a.Odds}
	case s.Lottery.Nonce == "":
		s.Lottery.Nonce, s.Lottery.Draws = hex.EncodeToString(a.Nonce[:]), a.Draws
		s.Cuts = a.Cuts
		s.Reason = "GPUs of 1 Run are being freed"
		if n := len(victims(a.Cuts)); n != 1 {
			s.Reason = fmt.Sprintf("GPUs of %d Runs are being freed", n)
		}
	default:
		return nil
	}
	return &Write{Verb: UpdateStatus, Reservation: next}
}

// victims returns the Runs that cuts are about.
func victims(made []rqv1.Cut) []rqv1.NamespacedName {
	var out []rqv1.NamespacedName
	for i := range made {
		if !slices.Contains(out, made[i].Run) {
			out = append(out, made[i].Run)
		}
	}
	return out
}

// planAround says that a Run whose turn has come was planned again around what is stuck; nil when nothing is, or it has
// been said.
func (r *revision) planAround() *Write {
	if len(r.seen.Stuck) == 0 {
		return nil
	}
	next := r.was.DeepCopy()
	next.Status.Reason = "planned again around pods that have not gone: " + firstStuck(r.seen.Stuck)
	if next.Status.Reason == r.was.Status.Reason {
		return nil
	}
	return &Write{Verb: UpdateStatus, Reservation: next, Stuck: r.seen.Stuck}
}

// callOff ends the Reservation of a Run that waits by the word of whoever may brake (R36): what its activation has not
// yet ended stays. What was published of a lottery can be checked, since its nonce is told.
func (r *revision) callOff() *Write {
	said := "called off" + r.seen.CalledOff.String()
	w := r.cancelFor(said)
	s := &w.Reservation.Status
	s.CalledOff, s.Cause = said, rqv1.CanceledCalledOff
	if s.ActivatedAt != nil && r.seen.Activation != nil && s.Lottery != nil {
		s.Lottery.Nonce = hex.EncodeToString(r.seen.Activation.Nonce[:])
	}
	return w
}

// suspend ends the Reservation of a Run that is suspended, whatever its turn has come to: those who have not been told
// to go stay.
func (r *revision) suspend() *Write {
	w := r.cancelFor("the Run is suspended")
	if s := &w.Reservation.Status; s.ActivatedAt != nil {
		s.Cause = rqv1.CanceledSuspended
	}
	return w
}
