package budget

import (
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Exchanges returns the pairs of a Run's open Leases that are to exchange payers, so that sponsors pay for the last of
// them: those are given back first (R6, R19). The Leases are given in order. Each is in one pair at most. An exchange
// changes nothing of what any payer pays: of two Leases only that are alike, and only where each payer takes part for
// the Run now and pays on the other's node (R3).
func (a *Accounts) Exchanges(ask Ask, leases []string, now time.Time) [][2]string {
	if !a.misplaced(leases) {
		return nil
	}
	offers := a.Cover(ask, now).Offers
	pays := func(payer, c *Charge) bool {
		e, known := a.find(payer.Payer)
		if !known || !a.nodes.covered(e, c) {
			return false
		}
		for i := range offers {
			if o := &offers[i]; o.Key == payer.Payer && o.Relation == payer.Relation {
				return o.Refusal == ""
			}
		}
		return false
	}
	var out [][2]string
	exchanged := make([]bool, len(leases))
	for last := len(leases) - 1; last > 0; last-- {
		high := a.charges[leases[last]]
		if high.Relation == rqv1.RelationSponsor {
			continue
		}
		for first := range last {
			low := a.charges[leases[first]]
			if !exchanged[first] && low.Relation == rqv1.RelationSponsor && alike(&low, &high) && pays(&low, &high) &&
				pays(&high, &low) {
				exchanged[first], exchanged[last] = true, true
				out = append(out, [2]string{leases[first], leases[last]})
				break
			}
		}
	}
	return out
}

// misplaced reports whether a sponsor pays for a Lease before one that it does not pay for.
func (a *Accounts) misplaced(leases []string) bool {
	sponsored := false
	for _, lease := range leases {
		switch borrows := a.charges[lease].Relation == rqv1.RelationSponsor; {
		case borrows:
			sponsored = true
		case sponsored:
			return true
		}
	}
	return false
}

// alike reports whether two charges of a Run take the same of whoever pays, for as long.
func alike(one, other *Charge) bool {
	return one.GPUs == other.GPUs && one.Rate == other.Rate && one.Role == other.Role && one.Until.Equal(other.Until)
}
