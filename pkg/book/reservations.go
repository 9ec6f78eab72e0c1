package book

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// reservations is what the book knows of the Reservations that there are and were.
type reservations struct {
	// byRun holds them by the UID of the Run that they are for.
	byRun map[types.UID]map[types.NamespacedName]*rqv1.Reservation
	// draws holds when Runs were drawn in lotteries, by their UIDs and by Reservation.
	draws map[types.UID]map[types.NamespacedName]time.Time
	// activations are those by which Runs were cut, in order of when: whoever asks about the last of them need not go
	// through a month's.
	activations []*rqv1.Reservation
	// gone are the UIDs of those that were deleted last, the oldest first.
	gone []types.UID
}

// keptGone is how many of those that were deleted are remembered: more than there are writes under way.
const keptGone = 256

func newReservations() reservations {
	return reservations{byRun: map[types.UID]map[types.NamespacedName]*rqv1.Reservation{},
		draws: map[types.UID]map[types.NamespacedName]time.Time{}}
}

// set adds or replaces a Reservation.
func (r *reservations) set(reservation *rqv1.Reservation) {
	r.remove(reservation)
	run := runOf(reservation)
	if r.byRun[run] == nil {
		r.byRun[run] = map[types.NamespacedName]*rqv1.Reservation{}
	}
	r.byRun[run][keyOf(reservation)] = reservation
	if at, cuts := r.find(reservation); cuts {
		r.activations = slices.Insert(r.activations, at, reservation)
	}
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
	if at, cuts := r.find(known); cuts {
		r.activations = slices.Delete(r.activations, at, at+1)
	}
	for victim := range victimsOf(known) {
		if delete(r.draws[victim], keyOf(reservation)); len(r.draws[victim]) == 0 {
			delete(r.draws, victim)
		}
	}
}

// find returns where a Reservation is, or is to be, among the activations, and whether it is one by which Runs are cut.
func (r *reservations) find(reservation *rqv1.Reservation) (at int, cuts bool) {
	if reservation.Status.ActivatedAt == nil || len(reservation.Status.Cuts) == 0 {
		return 0, false
	}
	at, _ = slices.BinarySearchFunc(r.activations, reservation, func(x, y *rqv1.Reservation) int {
		return cmp.Or(x.Status.ActivatedAt.Compare(y.Status.ActivatedAt.Time),
			strings.Compare(keyOf(x).String(), keyOf(y).String()))
	})
	return at, true
}

// since returns the activations after an instant by which Runs were cut, in order.
func (r *reservations) since(at time.Time) []*rqv1.Reservation {
	first := sort.Search(len(r.activations), func(i int) bool { return r.activations[i].Status.ActivatedAt.After(at) })
	return r.activations[first:]
}

// bury notes that a Reservation was deleted.
func (r *reservations) bury(reservation *rqv1.Reservation) {
	r.remove(reservation)
	r.gone = append(r.gone, reservation.UID)
	r.gone = r.gone[max(0, len(r.gone)-keptGone):]
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

// missed returns when an activation for a Run last ended by which it did not start; zero when none did.
func (r *reservations) missed(run types.UID) (at time.Time) {
	for _, reservation := range r.byRun[run] {
		if s := &reservation.Status; s.Cause != "" && s.EndedAt != nil {
			at = latest(at, s.EndedAt.Time)
		}
	}
	return at
}

// returned reports whether an activation cuts nobody: it takes back what is on loan.
func returned(s *rqv1.ReservationStatus) bool { return resolver.Returns(s.ConflictSet, s.Cuts) }

// activated reports whether others were cut for a Run when it started at an instant, given in whole seconds.
func (r *reservations) activated(run types.UID, started time.Time) bool {
	for _, reservation := range r.byRun[run] {
		s := &reservation.Status
		if s.ActivatedAt != nil && !returned(s) && !s.ActivatedAt.After(started.Add(time.Second)) &&
			(s.EndedAt == nil || !s.EndedAt.Time.Before(started)) {
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
		if s.ActivatedAt != nil && slices.ContainsFunc(s.Cuts, func(c rqv1.Cut) bool {
			return c.UID == victim && c.Action.Cuts()
		}) {
			at = latest(at, s.ActivatedAt.Time)
		}
	}
	return at
}

func runOf(r *rqv1.Reservation) types.UID { return types.UID(r.Labels[rqv1.LabelRunUID]) }

// older reports whether a version of a Reservation comes before what is known of it: a watch brings what this process
// has written itself a while later, and may have told before the answer to a write that it was deleted.
func (r *reservations) older(reservation *rqv1.Reservation) bool {
	if slices.Contains(r.gone, reservation.UID) {
		return true
	}
	known := r.byRun[runOf(reservation)][keyOf(reservation)]
	if known == nil || known.UID != reservation.UID {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(reservation.ResourceVersion, known.ResourceVersion)
	return err == nil && order < 0
}

// ofRun returns a Run's Reservations, the latest first.
func (r *reservations) ofRun(run types.UID) []*rqv1.Reservation {
	out := slices.Collect(maps.Values(r.byRun[run]))
	slices.SortFunc(out, func(x, y *rqv1.Reservation) int {
		return cmp.Or(y.CreationTimestamp.Compare(x.CreationTimestamp.Time), strings.Compare(y.Name, x.Name))
	})
	return out
}

// calledOff returns when an activation for a Run was last called off, and by which word; zero when none ever was.
func (r *reservations) calledOff(run types.UID) (at time.Time, word string) {
	for _, reservation := range r.byRun[run] {
		s := &reservation.Status
		if s.CalledOff != "" && s.EndedAt != nil && s.EndedAt.After(at) {
			at, word = s.EndedAt.Time, s.CalledOff
		}
	}
	return at, word
}
