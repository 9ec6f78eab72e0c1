package book

import (
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// reservations is what the book knows of the Reservations that there are and were.
type reservations struct {
	// byRun holds them by the UID of the Run that they are for.
	byRun map[types.UID]map[types.NamespacedName]*rqv1.Reservation
	// draws holds when Runs were drawn in lotteries, by their UIDs and by Reservation.
	draws map[types.UID]map[types.NamespacedName]time.Time
}

func newReservations() reservations {
	return reservations{byRun: map[types.UID]map[types.NamespacedName]*rqv1.Reservation{}, draws: map[types.UID]map[types.NamespacedName]time.Time{}}
}

// set adds or replaces a Reservation.
func (r *reservations) set(reservation *rqv1.Reservation) {
	r.remove(reservation)
	run := runOf(reservation)
	if r.byRun[run] == nil {
		r.byRun[run] = map[types.NamespacedName]*rqv1.Reservation{}
	}
	r.byRun[run][keyOf(reservation)] = reservation
	for victim := range victimsOf(reservation) {
		if r.draws[victim] == nil {
			r.draws[victim] = map[types.NamespacedName]time.Time{}
		}
		r.draws[victim][keyOf(reservation)] = reservation.Status.ActivatedAt.Time
	}
}

// victimsOf goes through the Runs that were drawn for a Reservation.
func victimsOf(reservation *rqv1.Reservation) iter.Seq[types.UID] {
	return func(yield func(types.UID) bool) {
		s := &reservation.Status
		for i := range s.Cuts {
			if s.ActivatedAt != nil && s.Cuts[i].Action == rqv1.CutLottery && !yield(s.Cuts[i].UID) {
				return
			}
		}
	}
}

// remove forgets a Reservation.
func (r *reservations) remove(reservation *rqv1.Reservation) {
	run := runOf(reservation)
	known := r.byRun[run][keyOf(reservation)]
	if known == nil {
		return
	}
	if delete(r.byRun[run], keyOf(reservation)); len(r.byRun[run]) == 0 {
		delete(r.byRun, run)
	}
	for victim := range victimsOf(known) {
		if delete(r.draws[victim], keyOf(reservation)); len(r.draws[victim]) == 0 {
			delete(r.draws, victim)
		}
	}
}

// current returns the Reservation of a Run that has not ended; nil when there is none.
func (r *reservations) current(run types.UID) *rqv1.Reservation {
	for _, reservation := range r.byRun[run] {
		if !reservation.Ended() {
			return reservation
		}
	}
	return nil
}

// activated reports whether others were cut for a Run when it started at an instant, given in whole seconds.
func (r *reservations) activated(run types.UID, started time.Time) bool {
	for _, reservation := range r.byRun[run] {
		s := &reservation.Status
		if s.ActivatedAt != nil && !s.ActivatedAt.After(started.Add(time.Second)) && (s.EndedAt == nil || !s.EndedAt.Time.Before(started)) {
			return true
		}
	}
	return false
}

// drawn reports whether a Run that started at an instant, given in whole seconds, had been drawn in a lottery before.
func (r *reservations) drawn(run types.UID, started time.Time) bool {
	for _, at := range r.draws[run] {
		if !at.Truncate(time.Second).After(started) {
			return true
		}
	}
	return false
}

// lastCut returns when a Run was last cut for another; zero when it never was.
func (r *reservations) lastCut(cutter, victim types.UID) (at time.Time) {
	for _, reservation := range r.byRun[cutter] {
		s := &reservation.Status
		if s.ActivatedAt != nil && slices.ContainsFunc(s.Cuts, func(c rqv1.Cut) bool { return c.UID == victim }) {
			at = latest(at, s.ActivatedAt.Time)
		}
	}
	return at
}

func runOf(r *rqv1.Reservation) types.UID { return types.UID(r.Labels[rqv1.LabelRunUID]) }

// older reports whether a version of a Reservation comes before the one that is known: a watch brings what this process has
// written itself a while later.
func (r *reservations) older(reservation *rqv1.Reservation) bool {
	known := r.byRun[runOf(reservation)][keyOf(reservation)]
	if known == nil || known.UID != reservation.UID {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(reservation.ResourceVersion, known.ResourceVersion)
	return err == nil && order < 0
}

// SetReservation adds or replaces a Reservation.
func (b *Book) SetReservation(r *rqv1.Reservation) {
	b.mu.Lock()
	defer b.unlock()
	if b.reservations.older(r) {
		return
	}
	b.reservations.set(r)
	b.setCuts(keyOf(r), cutsIn(r))
	g := b.gangs[runOf(r)]
	switch {
	case g == nil:
	case r.Ended():
		b.dismiss(g, r)
	default:
		b.reserve(g, r)
	}
}

// DeleteReservation forgets a Reservation, which somebody deleted or which is old.
func (b *Book) DeleteReservation(r *rqv1.Reservation) {
	b.mu.Lock()
	defer b.unlock()
	b.reservations.remove(r)
	b.setCuts(keyOf(r), nil)
	if g := b.gangs[runOf(r)]; g != nil {
		b.dismiss(g, r)
	}
}

// dismiss has a gang forget its Reservation. If others were to be cut for it who have not left, it gives its places back and
// is planned anew.
func (b *Book) dismiss(g *gang, r *rqv1.Reservation) {
	if g.reservation == nil || g.reservation.UID != r.UID {
		return
	}
	g.reservation, g.activation, g.stuck = nil, nil, nil
	for _, m := range b.members {
		if m.awaited == g {
			m.awaited = nil // whoever has not been told to go stays
		}
	}
	if r.Status.CalledOff != "" {
		b.setPromise(g, nil) // it is given another one later
	}
	if g.awaiting > 0 {
		b.unwind(g)
	}
	if g.run != nil {
		b.reconcile(keyOf(g.run))
	}
	b.again(g)
}

// reserve notes the Reservation of a gang. What has been decided is published once the nonce is there.
func (b *Book) reserve(g *gang, r *rqv1.Reservation) {
	if g.reservation == nil && g.promise != nil {
		for i := range g.promise.Conflicts {
			b.reconcile(named(g.promise.Conflicts[i].Run)) // its name was not known when they came to be at risk
		}
	}
	g.reservation = r
	if g.since.IsZero() {
		g.since = r.CreationTimestamp.Time
	}
	if r.Status.Lottery != nil && r.Status.Lottery.Nonce != "" {
		g.activation = nil
		b.again(g)
	}
	b.signalDue()
}

// again has a gang that waits, or has given its places back, planned anew, because what was decided for it cannot be carried
// out as it was.
func (b *Book) again(g *gang) {
	if g.complete() && !g.started() && !g.woken && g.leader() != nil {
		b.wake(g)
	}
}
