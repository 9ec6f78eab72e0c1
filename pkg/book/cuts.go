package book

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// cutsOf returns the cuts of a Run by Reservations that are activating, the oldest activation first, then by Reservation.
func (b *Book) cutsOf(run types.UID) []rank.Cut {
	var out []rank.Cut
	for _, cuts := range b.cuts {
		for i := range cuts {
			if cuts[i].UID == run {
				out = append(out, cuts[i])
			}
		}
	}
	slices.SortStableFunc(out, func(x, y rank.Cut) int {
		return cmp.Or(x.At.Compare(y.At), strings.Compare(x.Reservation.String(), y.Reservation.String()))
	})
	return out
}

// setCuts replaces the cuts of a Reservation, and has the Runs looked at that they concern.
func (b *Book) setCuts(reservation types.NamespacedName, cuts []rank.Cut) {
	old := b.cuts[reservation]
	if reflect.DeepEqual(old, cuts) {
		return
	}
	if b.cuts[reservation] = cuts; len(cuts) == 0 {
		delete(b.cuts, reservation)
	}
	for _, cut := range slices.Concat(old, cuts) {
		b.reconcile(named(cut.Run))
	}
}

// tellCutters has the Runs looked at that a Run is cut for: it may hold nothing any more of what they wait for.
func (b *Book) tellCutters(run types.UID) {
	for _, cuts := range b.cuts {
		for i := range cuts {
			if cuts[i].UID == run {
				b.reconcile(cuts[i].For)
			}
		}
	}
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

func named(n rqv1.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: n.Namespace, Name: n.Name}
}
