package lifecycle

import (
	"k8s.io/apimachinery/pkg/api/meta"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// Reserve returns the next write that the Reservations of a Run need; nil when they stand as they should. A Reservation
// is made with the refusal, follows the forecast, publishes what has been decided, and ends with the Run's start or
// with the Run. Each write is decided on from what has been written before, so that any process may go on from there.
func Reserve(o Observed) *Write {
	gone := o.Run == nil || o.Run.DeletionTimestamp != nil
	var current *revision
	for _, r := range o.Reservations {
		if r.Ended() {
			continue
		}
		current = &revision{seen: &o, was: r}
		if gone || r.Labels[rqv1.LabelRunUID] != string(o.Run.UID) {
			return current.cancelFor("the Run is gone")
		}
	}
	switch {
	case gone:
		return nil
	case current != nil:
		return current.due()
	case o.Run.Status.Phase == rqv1.RunPending && o.Promise != nil && !o.Run.Suspended():
		return &Write{Verb: Create, Reservation: newReservation(&o)}
	}
	return nil
}

// dateLost says why a Run has no date any more, and whose doing that is.
func dateLost(f *Observed) string {
	text := "no date can be promised any more: " + f.Refusal.Message
	if f.Refusal.Reason == plan.NotYet { // it passes, and the next Reservation follows
		text = "no date can be promised for now: " + f.Refusal.Message
	}
	if f.Usurped != "" {
		text += "; " + f.Usurped
	}
	return text
}

// due returns the next write that the Reservation needs; nil when it stands as it should, has not been tried again, or
// is about to start.
func (r *revision) due() *Write {
	f := r.seen
	switch phase := f.Run.Status.Phase; {
	case f.Run.Ended() && meta.IsStatusConditionTrue(f.Run.Status.Conditions, rqv1.ConditionStarted):
		return r.endAs(rqv1.ReservationReleased, "the Run has started, and has ended")
	case f.Run.Ended():
		return r.cancelFor("the Run has ended")
	case phase == rqv1.RunRunning && f.Awaited[r.was.UID]: // what was cut for the Run has not all left
		return nil
	case phase == rqv1.RunRunning:
		return r.endAs(rqv1.ReservationReleased, "the Run has started")
	case f.Run.Suspended():
		return r.suspend()
	case f.CalledOff != nil && f.Reservation != nil && f.Reservation.UID == r.was.UID:
		return r.callOff()
	case f.Activation != nil:
		return r.publish()
	case r.was.Status.State == rqv1.ReservationActivating: // it is published; or it is to be decided again
		return r.planAround()
	case f.Promise != nil:
		return r.follow()
	case f.Refusal == nil && f.incomplete():
		return r.cancelFor("pods of the group that it waited with are gone")
	case f.Refusal != nil && !f.Undated:
		return r.cancelFor(dateLost(f))
	}
	return nil
}
