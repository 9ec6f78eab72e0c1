package book

import (
	"cmp"
	"iter"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lane"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// cutTable is what is done to Runs for others: by activations, as Reservations say that are activating, or as has been
// decided for a gang and they do not say yet, and by lost ranks.
type cutTable struct {
	mail *mailbox

	byReservation map[types.NamespacedName][]rank.Cut
	decided       map[*gang][]rank.Cut
	// forRanks is what lost ranks of a gang take from its owner's Runs of lower priority (R44), until these have left.
	forRanks map[*gang][]rank.Cut
}

// setCuts replaces the cuts of a Reservation, and has the Runs looked at that they concern. It returns the cuts that
// are off.
func (ct *cutTable) setCuts(reservation types.NamespacedName, cuts []rank.Cut) (off []rank.Cut) {
	old := ct.byReservation[reservation]
	if reflect.DeepEqual(old, cuts) {
		return nil
	}
	ct.byReservation[reservation] = cuts
	if len(cuts) == 0 {
		delete(ct.byReservation, reservation)
		off = old
	}
	for _, cut := range slices.Concat(old, cuts) {
		ct.mail.reconcile(named(cut.Run), lane.Cut)
	}
	return off
}

// against goes through what activations do to a Run.
func against[By comparable](run types.UID, all map[By][]rank.Cut) iter.Seq[rank.Cut] {
	return func(yield func(rank.Cut) bool) {
		for _, cuts := range all {
			for i := range cuts {
				if cuts[i].UID == run && !yield(cuts[i]) {
					return
				}
			}
		}
	}
}

// tellCutters has the Runs looked at that a Run is cut for: it may hold nothing any more of what they wait for.
func (ct *cutTable) tellCutters(run types.UID) {
	for cut := range against(run, ct.byReservation) {
		ct.mail.reconcile(cut.For, lane.Cut)
	}
}

// cutsOf returns the cuts of a Run by Reservations that are activating and by lost ranks, the oldest first, then by
// Reservation and by whom they are for.
func (ct *cutTable) cutsOf(run types.UID) []rank.Cut {
	out := slices.Collect(against(run, ct.byReservation))
	for g, cuts := range ct.forRanks {
		for i := range cuts {
			if cuts[i].UID == run && g.started() && g.awaiting > 0 && !g.check.pending {
				out = append(out, cuts[i])
			}
		}
	}
	slices.SortStableFunc(out, func(x, y rank.Cut) int {
		return cmp.Or(x.At.Compare(y.At), strings.Compare(x.Reservation.String(), y.Reservation.String()),
			strings.Compare(x.For.String(), y.For.String()))
	})
	return out
}

// takesFrom reports whether a member's Run gives GPUs to lost ranks of a gang.
func (ct *cutTable) takesFrom(g *gang, m *member) bool {
	return m.gang.run != nil && slices.ContainsFunc(ct.forRanks[g], func(c rank.Cut) bool {
		return c.UID == m.gang.run.UID
	})
}

// isCut reports whether the activation of a Reservation cuts a gang.
func (ct *cutTable) isCut(g *gang) bool {
	for range against(g.run.UID, ct.byReservation) {
		return true
	}
	return false
}

// takes reports whether an activation takes what a Lease of a gang holds, or held.
func (ct *cutTable) takes(g *gang, l *lease) bool {
	for cut := range against(g.run.UID, ct.byReservation) {
		if taken(g, l.part, &cut.Cut) && l.held.Before(cut.At) {
			return true
		}
	}
	return false
}

// endsOrShrinks reports whether an activation is about to end a gang, which runs, or to make it narrower than it is.
func (ct *cutTable) endsOrShrinks(g *gang) bool {
	if !g.started() {
		return false
	}
	does := func(c rank.Cut) bool {
		switch {
		case c.Action == rqv1.CutDropSpare || !g.startedBefore(c.At):
			return false
		case c.Action.Narrows() && c.Width != nil:
			return g.settled().GPUs() > int(*c.Width)
		}
		return true
	}
	for cut := range against(g.run.UID, ct.byReservation) {
		if does(cut) {
			return true
		}
	}
	for cut := range against(g.run.UID, ct.decided) {
		if does(cut) {
			return true
		}
	}
	for cut := range against(g.run.UID, ct.forRanks) {
		if does(cut) {
			return true
		}
	}
	return false
}

// cutsIn returns the cuts that a Reservation records; none unless it is activating.
func cutsIn(r *rqv1.Reservation) []rank.Cut {
	if r.Status.State != rqv1.ReservationActivating || r.Status.ActivatedAt == nil {
		return nil
	}
	var out []rank.Cut
	for _, cut := range r.Status.Cuts {
		out = append(out, rank.Cut{Cut: cut, Reservation: keyOf(r), For: named(r.Spec.RunRef), At: r.Status.ActivatedAt.Time})
	}
	return out
}
