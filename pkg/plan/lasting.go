package plan

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// Lasting is the least maxDuration for which it counts that a Run without one would start at once with it (R19).
const Lasting = 24 * time.Hour

// MayLast reports whether a gang that declares no maxDuration could fit with one, of at least Lasting: where nodes go
// out of service, or money is promised to others.
func MayLast(fleet *topology.Fleet, claim Claim) bool {
	return claim.MaxDuration <= 0 && claim.Until.IsZero() && (fleet.AnyPlanned() || claim.Owed != nil)
}

// LongestThatFits returns the longest maxDuration, in whole hours and at least Lasting, with which a gang that declares
// none, and does not fit, would fit: by then it has left nodes that go out of service, and money that others are
// promised. It is 0 where there is none.
func LongestThatFits(fleet *topology.Fleet, accounts *budget.Accounts, d Demand, claim Claim, missing []Missing,
	excluded func(node string) bool, now time.Time) time.Duration {
	if !MayLast(fleet, claim) {
		return 0
	}
	fits := func(lasts time.Duration) bool {
		bounded := claim
		bounded.MaxDuration = lasts
		return Fits(fleet, accounts, d, bounded, missing, excluded, now)
	}
	edges := Prepare(accounts, d, claim, missing, excluded, now).cover.Dates(claim.Owed)
	for _, w := range fleet.Outages(d.Flavor) {
		edges = append(edges, w.Start)
	}
	var spans []time.Duration
	for _, edge := range edges {
		if span := edge.Sub(now).Truncate(time.Hour); span >= Lasting {
			spans = append(spans, span)
		}
	}
	slices.Sort(spans)
	spans = slices.Compact(spans)
	if n := sort.Search(len(spans), func(i int) bool { return !fits(spans[i]) }); n > 0 {
		return spans[n-1]
	}
	return 0
}

// Bound says of a refusal with which maxDuration, if that is not 0, the Run would start at once.
func (r *Refusal) Bound(lasts time.Duration) {
	r.MaxDuration = lasts
	if lasts > 0 {
		r.Message = fmt.Sprintf("%s; with a maxDuration of at most %dh it would start now, and no Run is cut for it in its "+
			"first %d hours of waiting while that is so", r.Message, lasts/time.Hour, Lasting/time.Hour)
	}
}
