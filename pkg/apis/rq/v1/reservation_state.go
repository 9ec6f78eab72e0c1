package v1

// Ended reports whether a Reservation was released or canceled.
func (r *Reservation) Ended() bool {
	return r.Status.State == ReservationReleased || r.Status.State == ReservationCanceled
}

// Abridged reports whether the conflict set lists only a part of what may be cut. One that is fixed never does.
func (r *Reservation) Abridged() bool {
	c := r.Status.Conflicts
	return c != nil && int(c.Total) > len(r.Status.ConflictSet)
}

// Cuts reports whether a Run loses something of its own by the action: what it has on loan is not.
func (a CutAction) Cuts() bool { return a != CutReturn }

// Narrows reports whether the action leaves a Run narrower, at a width that it states.
func (a CutAction) Narrows() bool { return a == CutShrink || a == CutReturn }
