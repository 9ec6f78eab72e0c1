package book

// Nobody goes through gangs that are at rest, however many there are: their Runs have ended and hold nothing any more.
// What is asked of one of them, by its Run, is answered as ever.

// settle finds out whether a gang is at rest. Whoever may have changed that calls it: the events of its Run, its pods,
// its Leases and its Reservations.
func (s *seating) settle(g *gang) {
	if s.roster.open && s.atRest(g) {
		delete(s.roster.living, g)
	} else {
		s.roster.living[g] = true
	}
}

// settleAll finds out which gangs are at rest when a process begins to decide: until then it does not know what is
// open.
func (s *seating) settleAll() {
	for _, g := range s.roster.gangs {
		s.settle(g)
	}
}

// atRest reports whether the Run of a gang has ended and nothing of that end is still to come: a Lease of it to be
// closed, or to turn up that is being written, a pod to go, or its Reservation, and what was decided for it, to be
// called off.
func (s *seating) atRest(g *gang) bool {
	if !g.over() || g.reservation != nil || g.activation != nil || len(g.vacant)+len(g.requeue.places) > 0 ||
		s.leasesOf[g.run.UID] > 0 {
		return false
	}
	for _, of := range [...]*squad{&g.active, &g.spares} {
		for _, m := range of.members {
			if m != nil && m.stage != finished {
				return false
			}
		}
	}
	return true
}
