package budget

import (
	"cmp"
	"slices"
)

// Exchanges returns the pairs of a Run's open Leases that are to exchange payers, so that who pays first (R2) pays for
// the first of them: the others are given back before (R6, R19). The Leases are given in order. Each is in one pair at
// most. An exchange changes nothing of what any payer pays, nor of who lends: of two Leases only that are alike, and
// only where each payer pays on the other's node (R3). Whether he would lend anew makes no difference.
func (a *Accounts) Exchanges(leases []string) [][2]string {
	if !a.misplaced(leases) {
		return nil
	}
	pays := func(payer, c *Charge) bool {
		e, known := a.find(payer.Payer)
		return known && a.nodes.covered(e, c)
	}
	worst := 0
	for _, lease := range leases {
		worst = max(worst, a.charges[lease].Relation.Step())
	}
	var out [][2]string
	exchanged, compared := make([]bool, len(leases)), 0
	for last := len(leases) - 1; last > 0; last-- {
		high, with := a.charges[leases[last]], -1
		for first := range last {
			compared++
			if compared > mostCompared {
				return out
			}
			low := a.charges[leases[first]]
			later := low.Relation.Step() > high.Relation.Step() &&
				(with < 0 || low.Relation.Step() > a.charges[leases[with]].Relation.Step())
			if !exchanged[first] && later && alike(&low, &high) && pays(&low, &high) && pays(&high, &low) {
				with = first
				if low.Relation.Step() == worst {
					break
				}
			}
		}
		if with >= 0 {
			exchanged[with], exchanged[last] = true, true
			out = append(out, [2]string{leases[with], leases[last]})
		}
	}
	return out
}

// mostCompared bounds how many pairs of Leases are looked at in one go: where payers pay on nodes that differ, none may
// do.
const mostCompared = 20000

// misplaced reports whether somebody pays for a Lease who is asked later than who pays for one behind it.
func (a *Accounts) misplaced(leases []string) bool {
	return !slices.IsSortedFunc(leases, func(one, other string) int {
		return cmp.Compare(a.charges[one].Relation.Step(), a.charges[other].Relation.Step())
	})
}

// alike reports whether two charges of a Run take the same of whoever pays, for as long.
func alike(one, other *Charge) bool {
	return one.GPUs == other.GPUs && one.Rate == other.Rate && one.Role == other.Role && one.Until.Equal(other.Until)
}
