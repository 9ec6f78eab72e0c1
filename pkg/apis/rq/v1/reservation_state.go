package v1

// Ended reports whether a Reservation was released or canceled.
func (r *Reservation) Ended() bool {
	return r.Status.State == ReservationReleased || r.Status.State == ReservationCanceled
}
