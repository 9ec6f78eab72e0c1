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
		Payers: payersOf(cover.Offers), Dry: cover.Dry(wanted)}
	if limit, binds := cover.BorrowLimit(wanted); binds {
		r.Reason, r.Limit = BorrowLimit, limit
		r.Message = fmt.Sprintf("borrow limit of %d GPUs exhausted for requested width: the Run needs to borrow %d more "+
			"GPUs; raise spec.funding.maxBorrowGPUs or ask for fewer GPUs", limit.Max, r.ShortGPUs)
		return r
	}
	offers := told(cover.Offers)
	if !slices.ContainsFunc(offers, hasEnvelope) {
		r.Reason = NoBudget
		r.Message = fmt.Sprintf("no Budget of owner %s, its family or a sponsor that lends to it has an envelope for GPUs "+
			"of type %s; ask an administrator for one, or correct spec.owner or spec.resources.gpuType", d.Owner, d.Flavor)
		return r
	}
	nearest(r, offers)
	r.Message = fmt.Sprintf("budget of %s is short by %d of %d GPUs (%s)", d.Owner, r.ShortGPUs, wanted, details(offers))
	return r
}

// ofPlace says that there is no room for wanted GPUs where somebody pays for them, but for some of them.
func ofPlace(d Demand, cover *budget.Cover, wanted, fit int) *Refusal {
	r := &Refusal{Reason: NoRoomWhereFunded, Owner: d.Owner, Flavor: d.Flavor, WantedGPUs: wanted,
		ShortGPUs: wanted - fit, Payers: payersOf(cover.Offers), Dry: cover.Dry(wanted)}
	r.Message = fmt.Sprintf("%d %s GPUs are needed, and %d fit now where a Budget pays for them: short by %d; there is "+
		"room elsewhere", wanted, d.Flavor, fit, r.ShortGPUs)
	if where := whereFunded(told(cover.Offers), d.GPUsPerPod); where != "" {
		r.Message += fmt.Sprintf(" (%s)", where)
	}
	return r
}

// whereFunded says on which nodes each of those pays who do.
func whereFunded(offers []budget.Offer, gpusPerPod int) string {
	var out []string
	for i := range offers {
		o := &offers[i]
		if o.Refusal == "" && o.Pods > 0 {
			out = append(out, fmt.Sprintf("%s pays for up to %d on %s", nameOf(o), o.Pods*gpusPerPod, o.Where()))
		}
	}
	if more := len(out) - named; more > 0 {
		out = append(out[:named], fmt.Sprintf("and %d more: see kubectl runs budgets explain", more))
	}
	return strings.Join(out, "; ")
}

// payersOf returns the Budgets of some offers, sorted, of those that are not told too.
func payersOf(offers []budget.Offer) []string {
	var out []string
	for i := range offers {
		if hasEnvelope(offers[i]) {
			out = append(out, offers[i].Key.Budget)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// told returns the offers that whoever may read the Run is told of.
func told(offers []budget.Offer) []budget.Offer {
	return slices.DeleteFunc(slices.Clone(offers), func(o budget.Offer) bool { return o.Untold })
}

// hasEnvelope is false for what is told of a sponsor that does not lend.
func hasEnvelope(o budget.Offer) bool { return o.Key != budget.Key{} }

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

// named is how many envelopes a message names; the command that it points to names all.
const named = 4

// details says what each envelope offers, in the order in which they pay.
func details(offers []budget.Offer) string {
	var out []string
	for i := range offers {
		if i == named {
			out = append(out, fmt.Sprintf("and %d more: see kubectl runs budgets explain", len(offers)-named))
			break
		}
		o := &offers[i]
		switch {
		case o.Refusal != "":
			out = append(out, fmt.Sprintf("%s: %s", nameOf(o), o.Refusal))
		case o.Limit.Kind == budget.Concurrency && o.Limit.Cap == "":
			out = append(out, fmt.Sprintf("%s: %d of %d GPUs in use%s", nameOf(o), o.Used, o.Concurrency,
				o.Limit.Reserved()))
		default:
			out = append(out, fmt.Sprintf("%s: %s", nameOf(o), o.Limit))
		}
	}
	return strings.Join(out, "; ")
}

// nameOf returns an envelope with what its owner is to the Run's; the owner alone where no envelope is told.
func nameOf(o *budget.Offer) string {
	switch {
	case !hasEnvelope(*o):
		return fmt.Sprintf("%s %s", o.Relation, o.Owner)
	case o.Relation == rqv1.RelationOwn:
		return o.Key.String()
	}
	return fmt.Sprintf("%s of %s %s", o.Key, o.Relation, o.Owner)
}
