package plan

import (
	"fmt"
	"slices"
	"sort"

	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// ranksWouldFit says of a refusal that only spares lack room in an empty fleet.
const ranksWouldFit = "; without spares it would fit"

// noRoom turns pack's shortfall into a refusal, which says so if an empty fleet would do without spares.
func (a *Attempt) noRoom(fleet *topology.Fleet, s *topology.Shortfall) *Refusal {
	r := ofRoom(a.demand, s)
	if r.Reason != NeverFits || !a.wantsBoth() {
		return r
	}
	ranks := a.withSpares(0)
	ranks.request.Purse = nil
	if short := ranks.Short(fleet); short == nil || short.Kind == topology.NoRoom {
		r.Message += ranksWouldFit
	}
	return r
}

// sparesUnpaid says, of a gang that nobody pays for, with what spares it would be paid for; it is empty where fewer do
// not help.
func (a *Attempt) sparesUnpaid() string {
	paid := func(pods int) bool { return a.withSpares(pods).Paid() }
	if !a.wantsBoth() || a.Paid() || !paid(0) {
		return ""
	}
	pods := sort.Search(a.demand.SparesPerGroup-1, func(n int) bool { return !paid(n + 1) })
	if pods == 0 {
		return "; without spares it would be paid for"
	}
	return fmt.Sprintf("; with spares of %d it would be paid for", pods*a.demand.GPUsPerPod)
}

// sparesUnplaced says, of a gang that has no place on a fleet where it is paid for, that it would have one without
// spares; it is empty where that is not so.
func (a *Attempt) sparesUnplaced(fleet *topology.Fleet) string {
	if !a.wantsBoth() || !a.withSpares(0).Fits(fleet) {
		return ""
	}
	return "; without spares it would fit where it is paid for"
}

// wantsBoth reports whether both ranks and spares are to be placed.
func (a *Attempt) wantsBoth() bool {
	return slices.Contains(a.spare, true) && slices.Contains(a.spare, false)
}

// withSpares returns the attempt with at most so many spare pods in each group.
func (a *Attempt) withSpares(pods int) *Attempt {
	fewer := a.instead(slices.DeleteFunc(slices.Clone(a.missing), func(m Missing) bool {
		return m.Spare && m.Index%a.demand.SparesPerGroup >= pods
	}))
	fewer.request.Within = a.request.Within
	return fewer
}
