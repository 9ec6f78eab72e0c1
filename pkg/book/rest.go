package book

import "k8s.io/apimachinery/pkg/types"

// Nobody goes through gangs that are at rest, however many there are: their Runs have ended and hold nothing any more.
// What is asked of one of them, by its Run, is answered as ever.

// settle finds out whether a gang is at rest. Whoever may have changed that calls it: the events of its Run, its pods,
// its Leases and its Reservations.
func (r *roster) settle(g *gang) {
	if r.open && r.atRest(g) {
		delete(r.living, g)
	} else {
		r.living[g] = true
	}
}

// settleAll finds out which gangs are at rest when a process begins to decide: until then it does not know what is
// open.
func (r *roster) settleAll() {
	for _, g := range r.gangs {
		r.settle(g)
	}
}

// atRest reports whether the Run of a gang has ended and nothing of that end is still to come: a Lease of it to be
// closed, or to turn up that is being written, a pod to go, or its Reservation, and what was decided for it, to be
// called off.
func (r *roster) atRest(g *gang) bool {
	if !g.over() || g.reservation != nil || g.activation != nil || len(g.vacant)+len(g.requeue.places) > 0 ||
		r.leasesOf[g.run.UID] > 0 {
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

// countLease counts Leases of a Run that are there, or no more where n is negative.
func (r *roster) countLease(run types.UID, n int) {
	if run == "" {
		return
	}
	r.leasesOf[run] += n
	if r.leasesOf[run] == 0 {
		delete(r.leasesOf, run)
	}
	if g := r.gangs[run]; g != nil && g.over() {
		r.settle(g)
	}
}
