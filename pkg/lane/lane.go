// Package lane says what is done first of all that there is to do for Runs: what frees GPUs comes before what takes
// them, and no line of one kind of work holds up another.
package lane

import (
	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// Work is a kind of work on one Run. Of two kinds in one lane the greater goes first.
type Work int

// Kinds of work, by what it frees.
const (
	// Expire deletes a Run whose time after its end is over.
	Expire Work = iota - 1
	// Date tells a Run that waits when it starts, and others that they are at risk.
	Date
	// Begin makes what a Run lacks.
	Begin
	// Bind notes that pods are bound.
	Bind
	// End closes Leases and finishes Runs.
	End
	// Cut ends or replaces what others wait for: victims of activations, ranks of lost nodes.
	Cut
)

// Lane is a line of Runs with workers of its own.
type Lane int

// Lanes. In the one that two kinds of work share, what goes first cannot come in for ever while the rest waits: as many
// Runs are cut as have begun in another lane. What goes has a lane of its own: there may be a week's of it at once.
const (
	Expiries Lane = iota
	Dates
	Begins
	Binds
	Frees
)

// All lists the lanes.
var All = []Lane{Frees, Binds, Begins, Dates, Expiries}

// String names the lane, as metrics do.
func (l Lane) String() string { return [...]string{"expiries", "dates", "begins", "binds", "frees"}[l] }

// Workers is how many Runs are worked on at once from a lane, of one namespace at most half of that. More of those that
// begin would take the API server away from pods that are being bound.
func (l Lane) Workers() int { return [...]int{2, 2, 6, 6, 6}[l] }

// Lane returns where the work waits for its turn.
func (w Work) Lane() Lane {
	switch w {
	case Cut, End:
		return Frees
	case Bind:
		return Binds
	case Begin:
		return Begins
	case Expire:
		return Expiries
	}
	return Dates
}

// OfPod returns what is to be done for a Run as one of its pods has changed, or is gone.
func OfPod(pod *corev1.Pod, gone bool) Work {
	switch {
	case gone, pod.DeletionTimestamp != nil, rank.Ended(pod):
		return End
	case pod.Spec.NodeName != "":
		return Bind
	}
	return Begin
}

// OfLease returns what is to be done for a Run as one of its Leases has been opened, or is no longer open.
func OfLease(gone bool) Work {
	if gone {
		return End
	}
	return Bind
}

// OfRun returns what is to be done for a Run that has changed, or is gone. One that runs and whose owner has changed it
// may desire less, or end sooner.
func OfRun(run *rqv1.Run, gone bool) Work {
	switch {
	case gone, run.DeletionTimestamp != nil, run.Ended():
		return End
	case run.Status.Phase == rqv1.RunRunning && (run.Generation != run.Status.ObservedGeneration ||
		run.Status.Width != nil && run.Spec.Desired() < run.Status.Width.Granted):
		return End
	case run.Status.Phase == rqv1.RunRunning:
		return Bind
	}
	return Begin
}

// OfReservation returns what is to be done for a Run as its Reservation has changed, or is gone. While it is
// activating, others are about to be told to go.
func OfReservation(r *rqv1.Reservation, gone bool) Work {
	if !gone && r.Status.State == rqv1.ReservationActivating {
		return Cut
	}
	return Date
}
