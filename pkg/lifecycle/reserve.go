package lifecycle

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// Write is one write of a Reservation.
type Write struct {
	Verb        Verb
	Reservation *rqv1.Reservation
	// Stuck are the pods that the Reservation says for the first time are stuck, for their nodes to tell.
	Stuck []book.Stuck
}

// Verb is how a Reservation is written.
type Verb string

// Verbs of a Write.
const (
	Create       Verb = "create"
	Update       Verb = "update"
	UpdateStatus Verb = "updateStatus"
)

// Reserve returns the next write that the Reservations of a Run need; nil when they stand as they should. A Reservation is
// made with the refusal, follows the forecast, publishes what has been decided, and ends with the Run's start or with the
// Run. Each write is decided on from what has been written before, so that any process may go on from there.
func Reserve(p Observed) *Write {
	var current *rqv1.Reservation
	gone := p.Run == nil || p.Run.DeletionTimestamp != nil
	for _, r := range p.Reservations {
		switch {
		case r.Ended():
		case gone, r.Labels[rqv1.LabelRunUID] != string(p.Run.UID):
			return p.end(r, rqv1.ReservationCanceled, "the Run is gone")
		default:
			current = r
		}
	}
	if gone {
		return nil
	}
	switch phase := p.Run.Status.Phase; {
	case current == nil && phase == rqv1.RunPending && p.Promise != nil:
		return &Write{Verb: Create, Reservation: p.newReservation()}
	case current == nil:
		return nil
	case phase == rqv1.RunCompleted || phase == rqv1.RunFailed:
		if meta.IsStatusConditionTrue(p.Run.Status.Conditions, rqv1.ConditionStarted) {
			return p.end(current, rqv1.ReservationReleased, "the Run has started, and has ended")
		}
		return p.end(current, rqv1.ReservationCanceled, "the Run has ended")
	case phase == rqv1.RunRunning:
		return p.release(current)
	case p.CalledOff != nil && p.Reservation != nil && p.Reservation.UID == current.UID:
		return p.callOff(current)
	case current.Status.State == rqv1.ReservationActivating || p.Activation != nil:
		return p.publish(current)
	case p.Promise != nil:
		return p.follow(current)
	case p.Refusal != nil:
		return p.end(current, rqv1.ReservationCanceled, "there is no date any more: "+p.Refusal.Message)
	}
	return nil // it has not been tried again, or it is about to start
}

// newReservation returns a Run's next Reservation: RUN-r0, RUN-r1, …
func (p *Observed) newReservation() *rqv1.Reservation {
	next := 0
	for _, r := range p.Reservations {
		next = max(next, turn(r)+1)
	}
	r := &rqv1.Reservation{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Run.Namespace, Name: fmt.Sprintf("%s-r%d", p.Run.Name, next),
			Labels: map[string]string{rqv1.LabelRun: p.Run.Name, rqv1.LabelRunUID: string(p.Run.UID)}},
		Spec: rqv1.ReservationSpec{RunRef: rqv1.NamespacedName{Namespace: p.Run.Namespace, Name: p.Run.Name}},
	}
	promised(&r.Spec, p.Promise)
	r.Spec.EarliestStart = metav1.NewTime(p.Promise.At.Truncate(time.Second))
	return r
}

// turn returns the number at the end of a Reservation's name; -1 if there is none.
func turn(r *rqv1.Reservation) int {
	n, err := strconv.Atoi(r.Name[strings.LastIndex(r.Name, "-r")+len("-r"):])
	if err != nil {
		return -1
	}
	return n
}

// promised has a Reservation say where its Run is going to be, and who is going to pay.
func promised(spec *rqv1.ReservationSpec, p *forecast.Promise) {
	spec.PayingEnvelopes = p.Payers
	spec.IntendedSlice = &rqv1.IntendedSlice{Domain: p.Slice.Labels}
	for _, held := range p.Nodes {
		spec.IntendedSlice.Nodes = append(spec.IntendedSlice.Nodes, held.Node)
	}
}

// follow has a Reservation say what is promised now, and commit to a nonce.
func (p *Observed) follow(r *rqv1.Reservation) *Write {
	next := r.DeepCopy()
	promised(&next.Spec, p.Promise)
	next.Spec.EarliestStart = metav1.NewTime(p.Promise.At.Truncate(time.Second))
	if !equality.Semantic.DeepEqual(&next.Spec, &r.Spec) {
		return &Write{Verb: Update, Reservation: next}
	}
	commitment := p.Commitments[r.UID]
	switch said := r.Status.Lottery; {
	case said == nil || said.Commitment == "":
	case commitment == "":
		commitment = said.Commitment // the key is not known at the moment
	case said.Commitment != commitment:
		return p.end(r, rqv1.ReservationCanceled, "the key of lotteries has been replaced, so that what was committed to cannot be kept")
	}
	left := max(0, int64(p.Promise.At.Sub(p.Now)/time.Second))
	s := &next.Status
	s.State, s.CountdownSeconds = rqv1.ReservationPending, &left
	if p.Refusal != nil {
		s.Reason = withBrake(p.Refusal.Message, p.Brake)
	}
	s.Forecast = forecastOf(p.Promise)
	s.ConflictSet = p.Promise.Conflicts
	s.Lottery = &rqv1.Lottery{Commitment: commitment, Odds: p.Promise.Odds}
	if !tells(&r.Status, s) {
		return nil
	}
	return &Write{Verb: UpdateStatus, Reservation: next}
}

func forecastOf(p *forecast.Promise) *rqv1.Forecast {
	return &rqv1.Forecast{DeficitGPUs: int32(p.Slice.Deficit), Scope: p.Slice.Scope, Confidence: p.Confidence, Remedies: p.Remedies}
}

// tells reports whether a status says something new: anything but the countdown, or that once it has halved.
func tells(was, next *rqv1.ReservationStatus) bool {
	a, b := *was, *next
	a.CountdownSeconds, b.CountdownSeconds = nil, nil
	if !equality.Semantic.DeepEqual(a, b) || was.CountdownSeconds == nil {
		return true
	}
	return *next.CountdownSeconds < *was.CountdownSeconds && *next.CountdownSeconds <= *was.CountdownSeconds/2
}

// publish writes what has been decided in two steps: the conflict set that the draw is about, in the slice that the
// Reservation says, and then the nonce, the draws and the cuts (R21). Those who are cut learn of it from there. A decision
// that cannot be carried out is revealed and canceled.
func (p *Observed) publish(r *rqv1.Reservation) *Write {
	a := p.Activation
	if a == nil {
		return p.around(r) // it is published; or it is to be decided again
	}
	next := r.DeepCopy()
	s := &next.Status
	if a.Promise != nil && s.ActivatedAt == nil {
		if promised(&next.Spec, a.Promise); !equality.Semantic.DeepEqual(&next.Spec, &r.Spec) {
			return &Write{Verb: Update, Reservation: next}
		}
	}
	if s.Lottery == nil {
		s.Lottery = &rqv1.Lottery{}
	}
	none := int64(0)
	switch {
	case a.Failed:
		s.Lottery.Nonce, s.Cause = hex.EncodeToString(a.Nonce[:]), a.Cause
		write := p.end(next, rqv1.ReservationCanceled, "the Run could not start after all: "+a.Why)
		write.Stuck = p.Stuck
		return write
	case s.ActivatedAt == nil:
		at := metav1.NewMicroTime(a.At)
		s.State, s.Reason, s.CountdownSeconds, s.ActivatedAt, s.ConflictSet = rqv1.ReservationActivating, "its turn has come", &none, &at, a.Conflicts
		s.Lottery = &rqv1.Lottery{Commitment: resolver.Commitment(a.Nonce), ConflictSetDigest: resolver.Digest(a.Conflicts), Odds: a.Odds}
	case s.Lottery.Nonce == "":
		s.Lottery.Nonce, s.Lottery.Draws, s.Cuts = hex.EncodeToString(a.Nonce[:]), a.Draws, a.Cuts
		s.Reason = fmt.Sprintf("GPUs of %d Runs are being freed", len(victims(a.Cuts)))
	default:
		return nil
	}
	return &Write{Verb: UpdateStatus, Reservation: next}
}

// around says that a Run whose turn has come was planned again around what is stuck; nil when nothing is, or it has been said.
func (p *Observed) around(r *rqv1.Reservation) *Write {
	if len(p.Stuck) == 0 {
		return nil
	}
	next := r.DeepCopy()
	if next.Status.Reason = "planned again around what has not gone: " + stuck(p.Stuck); next.Status.Reason == r.Status.Reason {
		return nil
	}
	return &Write{Verb: UpdateStatus, Reservation: next, Stuck: p.Stuck}
}

// stuck says which pods are stuck: the first of them, and how many more there are.
func stuck(pods []book.Stuck) string {
	if more := len(pods) - 1; more > 0 {
		return fmt.Sprintf("%s, and %d more", pods[0], more)
	}
	return pods[0].String()
}

// victims returns the Runs that cuts are about.
func victims(cuts []rqv1.Cut) []rqv1.NamespacedName {
	var out []rqv1.NamespacedName
	for i := range cuts {
		if !slices.Contains(out, cuts[i].Run) {
			out = append(out, cuts[i].Run)
		}
	}
	return out
}

// release ends the Reservation of a Run that has started, once all that was cut for it has left.
func (p *Observed) release(r *rqv1.Reservation) *Write {
	if p.Awaited[r.UID] {
		return nil
	}
	return p.end(r, rqv1.ReservationReleased, "the Run has started")
}

func (p *Observed) end(r *rqv1.Reservation, state rqv1.ReservationState, why string) *Write {
	next := r.DeepCopy()
	now := metav1.NewTime(p.Now)
	next.Status.State, next.Status.Reason, next.Status.EndedAt, next.Status.CountdownSeconds = state, why, &now, nil
	return &Write{Verb: UpdateStatus, Reservation: next}
}
