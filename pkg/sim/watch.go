package sim

import (
	"maps"
	"slices"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// ForgetReservation deletes a Reservation, as somebody may.
func (c *Cluster) ForgetReservation(name string) {
	c.under = append(c.under, version{c.Reservations[name], true})
	delete(c.Reservations, name)
}

// Delivers reports whether a Reservation is on its way to the process.
func (c *Cluster) Delivers() bool { return len(c.under) > 0 }

// Deliver has the process see the next version of a Reservation that is on its way.
func (c *Cluster) Deliver() {
	if len(c.under) == 0 {
		return
	}
	v := c.under[0]
	c.under = c.under[1:]
	c.changed[v.Spec.RunRef.Name] = true
	if v.gone {
		delete(c.Seen, v.Name)
		c.seenOf.drop(v.Spec.RunRef.Name, v.Name)
		c.Book.DeleteReservation(v.Reservation)
		return
	}
	c.see(v.Reservation)
	c.Book.SetReservation(v.Reservation)
}

func (c *Cluster) see(r *rqv1.Reservation) {
	c.Seen[r.Name] = r
	c.seenOf.add(r.Spec.RunRef.Name, r.Name)
}

// seeAll has a process that begins see the Reservations that there are.
func (c *Cluster) seeAll() {
	c.under = nil
	clear(c.Seen)
	clear(c.seenOf)
	for _, name := range slices.Sorted(maps.Keys(c.Reservations)) {
		c.see(c.Reservations[name])
	}
}
