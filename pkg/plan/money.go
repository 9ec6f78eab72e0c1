package plan

import (
	"fmt"
	"slices"
	"strings"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
)

// ofBudget says why wanted GPUs are not paid for, of which payable would be.
func ofBudget(d Demand, cover *budget.Cover, wanted, payable int) *Refusal {
	r := &Refusal{Owner: d.Owner, Flavor: d.Flavor, WantedGPUs: wanted, ShortGPUs: wanted - payable,
		Payers: payersOf(cover.Offers)}
	if limit, binds := cover.BorrowLimit(wanted); binds {
		r.Reason, r.Limit = BorrowLimit, limit
		r.Message = fmt.Sprintf("borrow limit of %d GPUs exhausted for requested width: %d more GPUs would have to "+
			"be borrowed; "+
			"raise spec.funding.maxBorrowGPUs or ask for fewer GPUs", limit.Max, r.ShortGPUs)
		return r
	}
	if len(cover.Offers) == 0 {
		r.Reason = NoBudget
		r.Message = fmt.Sprintf("owner %s has no Budget with an envelope of flavor %s, nor has its family or a sponsor; "+
			"ask for one, or correct spec.owner or spec.resources.gpuType", d.Owner, d.Flavor)
		return r
	}
	nearest(r, cover.Offers)
	r.Message = fmt.Sprintf("budget of %s is short by %d of %d GPUs (%s)", d.Owner, r.ShortGPUs, wanted,
		details(cover.Offers))
	return r
}

// payersOf returns the Budgets of some offers, sorted.
func payersOf(offers []budget.Offer) []string {
	var out []string
	for i := range offers {
		out = append(out, offers[i].Key.Budget)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// nearest finds the envelope that is short: the first that takes part, else the one that opens first.
func nearest(r *Refusal, offers []budget.Offer) {
	r.Reason = NoBudget
	for i := range offers {
		o := &offers[i]
		switch {
		case o.Refusal == "":
			r.Reason, r.Envelope, r.Limit = InsufficientBudget, o.Key, o.Limit
			if o.Limit.Hours() {
				r.Reason = InsufficientGPUHours
			}
			return
		case !o.Opens.IsZero() && (r.Opens.IsZero() || o.Opens.Before(r.Opens)):
			r.Reason, r.Opens = WindowClosed, o.Opens
			r.Envelope, r.Limit = o.Key, o.Limit
		}
	}
}

// told is how many envelopes a message names; the command that it points to names all.
const told = 4

// details says what each envelope offers, in the order in which they pay.
func details(offers []budget.Offer) string {
	var out []string
	for i := range offers {
		if i == told {
			out = append(out, fmt.Sprintf("and %d more envelopes: see kubectl runs budgets explain", len(offers)-told))
			break
		}
		o := &offers[i]
		switch {
		case o.Refusal != "":
			out = append(out, fmt.Sprintf("%s: %s", named(o), o.Refusal))
		case o.Limit.Kind == budget.Concurrency && o.Limit.Cap == "":
			out = append(out, fmt.Sprintf("%s: %d of %d GPUs in use", named(o), o.Used, o.Concurrency))
		default:
			out = append(out, fmt.Sprintf("%s: %s", named(o), o.Limit))
		}
	}
	return strings.Join(out, "; ")
}

// named returns an envelope with what its owner is to the Run's.
func named(o *budget.Offer) string {
	if o.Relation == rqv1.RelationOwn {
		return o.Key.String()
	}
	return fmt.Sprintf("%s of %s %s", o.Key, o.Relation, o.Owner)
}
