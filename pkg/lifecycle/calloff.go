package lifecycle

import (
	"encoding/hex"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// callOff ends the Reservation of a Run that waits by the word of whoever may brake (R36): what its activation has not yet ended
// stays.
func (p *Observed) callOff(r *rqv1.Reservation) *Write {
	said := "called off" + p.CalledOff.String()
	w := p.end(r, rqv1.ReservationCanceled, said)
	s := &w.Reservation.Status
	s.CalledOff, s.Cause = said, rqv1.CanceledCalledOff
	if s.ActivatedAt != nil && p.Activation != nil && s.Lottery != nil {
		s.Lottery.Nonce = hex.EncodeToString(p.Activation.Nonce[:]) // what was published can be checked
	}
	return w
}

// withBrake adds to a message why nobody is cut.
func withBrake(message, brake string) string {
	if brake == "" {
		return message
	}
	return message + "; " + brake
}
