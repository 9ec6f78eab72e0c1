package view

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/risk"
)

// Promise is what a Reservation says at an instant: when a Run starts, what stands in its way and what is done about
// it.
type Promise struct {
	Reservation string                `json:"reservation,omitempty"`
	State       rqv1.ReservationState `json:"state,omitempty"`
	StateReason string                `json:"stateReason,omitempty"`
	// EarliestStart is when the Run starts, CountdownSeconds how far away that is; absent once the Reservation has
	// ended.
	EarliestStart    metav1.Time           `json:"earliestStart"`
	CountdownSeconds *int64                `json:"countdownSeconds,omitempty"`
	Confidence       string                `json:"confidence,omitempty"`
	DeficitGPUs      int32                 `json:"deficitGPUs"`
	Scope            string                `json:"scope,omitempty"`
	Remedies         []string              `json:"remedies,omitempty"`
	ConflictSet      []rqv1.Conflict       `json:"conflictSet,omitempty"`
	Conflicts        *rqv1.ConflictTotal   `json:"conflicts,omitempty"`
	Odds             string                `json:"odds,omitempty"`
	IntendedSlice    *rqv1.IntendedSlice   `json:"intendedSlice,omitempty"`
	PayingEnvelopes  []rqv1.PayingEnvelope `json:"payingEnvelopes,omitempty"`
	ActivatedAt      *metav1.MicroTime     `json:"activatedAt,omitempty"`
	Cuts             []rqv1.Cut            `json:"cuts,omitempty"`
	EndedAt          *metav1.Time          `json:"endedAt,omitempty"`
}

// PromiseOf reads a Reservation.
func PromiseOf(r *rqv1.Reservation, now time.Time) Promise {
	p := Promise{
		Reservation:     r.Name,
		State:           StateOf(r),
		StateReason:     r.Status.Reason,
		EarliestStart:   r.Spec.EarliestStart,
		ConflictSet:     r.Status.ConflictSet,
		Conflicts:       r.Status.Conflicts,
		IntendedSlice:   r.Spec.IntendedSlice,
		PayingEnvelopes: r.Spec.PayingEnvelopes,
		ActivatedAt:     r.Status.ActivatedAt,
		Cuts:            r.Status.Cuts,
		EndedAt:         r.Status.EndedAt,
	}
	if f := r.Status.Forecast; f != nil {
		p.Confidence, p.DeficitGPUs, p.Scope, p.Remedies = f.Confidence, f.DeficitGPUs, f.Scope, f.Remedies
	}
	if r.Status.Lottery != nil {
		p.Odds = r.Status.Lottery.Odds
	}
	if !HasEnded(r) {
		p.CountdownSeconds = CountdownSeconds(p.EarliestStart, now)
	}
	return p
}

// Promised is what the Run waits for, among the promises of its Reservations: without the one that it names, the date
// that it knows by itself, and nil without a date.
func (w *Waiting) Promised(promises []Promise) *Promise {
	for i := range promises {
		if p := &promises[i]; p.Reservation == w.Reservation && p.CountdownSeconds != nil {
			return p
		}
	}
	if w.EarliestStart == nil {
		return nil
	}
	return &Promise{Reservation: w.Reservation, EarliestStart: *w.EarliestStart, CountdownSeconds: w.CountdownSeconds}
}

// StateOf is the state of a Reservation; one without a state is Pending.
func StateOf(r *rqv1.Reservation) rqv1.ReservationState {
	if r.Status.State == "" {
		return rqv1.ReservationPending
	}
	return r.Status.State
}

// HasEnded is true when nothing is promised any more.
func HasEnded(r *rqv1.Reservation) bool {
	return StateOf(r) == rqv1.ReservationReleased || StateOf(r) == rqv1.ReservationCanceled
}

// IsFor is true when the Reservation is the Run's own, and not that of an earlier Run of the same name.
func IsFor(r *rqv1.Reservation, run *rqv1.Run) bool {
	return r.Spec.RunRef == rqv1.NamespacedName{Namespace: run.Namespace, Name: run.Name} &&
		!r.CreationTimestamp.Before(&run.CreationTimestamp)
}

// Risk is a Reservation whose activation may cut a Run, and the Run that it is for, where it could be read. Both are
// namespace/name.
type Risk struct {
	Reservation      string      `json:"reservation"`
	For              string      `json:"for,omitempty"`
	At               metav1.Time `json:"at"`
	CountdownSeconds *int64      `json:"countdownSeconds"`
	Probability      string      `json:"probability"`
	// Cuts are what may be done to the Run, the gravest first.
	Cuts []rqv1.RiskCut `json:"cuts,omitempty"`
}

// RisksOf are those that the Run's status lists.
func RisksOf(run *rqv1.Run, now time.Time) []Risk {
	var risks []Risk
	for _, r := range run.Status.AtRisk {
		risks = append(risks, Risk{Reservation: r.Reservation, At: r.At, CountdownSeconds: CountdownSeconds(r.At, now),
			Probability: r.Probability, Cuts: r.Cuts})
	}
	return risks
}

// MoreRisks is how many Reservations may cut a Run beyond those that its status lists.
func MoreRisks(run *rqv1.Run) int { return max(0, int(run.Status.AtRiskTotal)-len(run.Status.AtRisk)) }

// recorded is the risk as the Run's status lists it.
func (r *Risk) recorded() *rqv1.RunRisk {
	return &rqv1.RunRisk{Reservation: r.Reservation, At: r.At, Probability: r.Probability, Cuts: r.Cuts}
}

// InWords says what may be done to the Run. When is written after that, and for whom.
func (r *Risk) InWords(when string) string {
	whom := "another Run"
	if r.For != "" {
		whom = r.For
	}
	return fmt.Sprintf("%s%s to make room for %s (Reservation %s)", risk.Words(r.recorded()), when, whom, r.Reservation)
}

// exactly is until how long before an instant seconds matter to people.
const exactly = 10 * time.Minute

// Countdown says how far away an instant is, the more exactly the nearer it is.
func Countdown(t metav1.Time, now time.Time) string {
	left := t.Sub(now).Truncate(time.Second)
	if left <= 0 {
		return "now"
	}
	if left >= exactly {
		left = left.Round(time.Minute)
	}
	return "in " + duration.HumanDuration(left)
}

// CountdownSeconds is how far away an instant is; 0 for one that has passed.
func CountdownSeconds(t metav1.Time, now time.Time) *int64 {
	seconds := max(0, int64(t.Sub(now)/time.Second))
	return &seconds
}
