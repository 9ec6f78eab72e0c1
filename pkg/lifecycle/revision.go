package lifecycle

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
)

// Write is one write of a Reservation.
type Write struct {
	Verb        Verb
	Reservation *rqv1.Reservation
	// Was is the date that an Update replaces; zero where it does not.
	Was time.Time
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

// revision is what becomes of the Reservation that a Run has.
type revision struct {
	seen *Observed
	was  *rqv1.Reservation
}

// endAs ends the Reservation in a state.
func (r *revision) endAs(state rqv1.ReservationState, why string) *Write {
	return endOf(r.was, state, why, r.seen.Now)
}

// cancelFor ends the Reservation of a Run that does not start by it.
func (r *revision) cancelFor(why string) *Write { return r.endAs(rqv1.ReservationCanceled, why) }

// endOf returns the write that ends a Reservation.
func endOf(r *rqv1.Reservation, state rqv1.ReservationState, why string, now time.Time) *Write {
	next := r.DeepCopy()
	at := metav1.NewTime(now)
	s := &next.Status
	s.State, s.Reason = state, why
	s.EndedAt, s.CountdownSeconds = &at, nil
	return &Write{Verb: UpdateStatus, Reservation: next}
}

// newReservation returns a Run's next Reservation: RUN-r0, RUN-r1, …
func newReservation(o *Observed) *rqv1.Reservation {
	next := 0
	for _, r := range o.Reservations {
		next = max(next, turn(r)+1)
	}
	r := &rqv1.Reservation{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Run.Namespace, Name: fmt.Sprintf("%s-r%d", o.Run.Name, next),
			Labels: map[string]string{rqv1.LabelRun: o.Run.Name, rqv1.LabelRunUID: string(o.Run.UID)}},
		Spec: rqv1.ReservationSpec{RunRef: rqv1.NamespacedName{Namespace: o.Run.Namespace, Name: o.Run.Name}},
	}
	promised(&r.Spec, o.Promise)
	r.Spec.EarliestStart = metav1.NewTime(o.Promise.At.Truncate(time.Second))
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
