package plan

import (
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
)

// Share is how many of a Run's GPUs one of its owner's envelopes could pay for at most.
type Share struct {
	Payer budget.Key
	GPUs  int
}

// Alone returns what each of its owner's own envelopes could pay for of a Run while nobody holds anything, in the order
// in which they pay; nil where they could not pay for all of it, or the nodes that its pods may use could not hold it
// where they do. GPU-hours that are spent stay spent. Which nodes the pods may not use is asked last: that takes a
// look at all of them.
func (p *Payers) Alone(d Demand, lasts time.Duration, rejected func() func(node string) bool) []Share {
	d.Beside = nil // which is not known of a fleet of which nobody holds anything
	claim := Claim{MaxDuration: lasts}
	a := prepare(p.Accounts, budget.Ask{
		Owner: d.Owner, Flavor: d.Flavor, GPUsPerPod: d.GPUsPerPod, MaxDuration: lasts, Unheld: true, Alone: true,
	}, d, claim, d.EveryPod(), nil, p.Now)
	if !a.Paid() || !d.fits(p.Fleet.Whole(d.Flavor)) {
		return nil
	}
	a.request.Excluded = rejected()
	if (a.request.Excluded != nil || !a.paidAnywhere()) && !a.Fits(p.Fleet.Unheld(d.Flavor)) {
		return nil
	}
	var out []Share
	for i := range a.cover.Offers {
		o := &a.cover.Offers[i]
		if gpus := min(a.wanted, o.Pods*d.GPUsPerPod); o.Relation == rqv1.RelationOwn && gpus > 0 {
			out = append(out, Share{Payer: o.Key, GPUs: gpus})
		}
	}
	return out
}

// Once returns what each of its owner's own envelopes is to pay for of a Run that they could pay for by now, wherever
// it is placed, or on nodes that one of them asks for: together what it wants, and no more. It returns the shares that
// are given where they could not, since nobody knows then which of them is to pay in the end.
func Once(accounts *budget.Accounts, d Demand, claim Claim, shares []Share, now time.Time) []Share {
	a := prepare(accounts, budget.Ask{
		Owner: d.Owner, Flavor: d.Flavor, GPUsPerPod: d.GPUsPerPod, MaxDuration: claim.MaxDuration, Owed: claim.Owed,
		Alone: true,
	}, d, claim, d.EveryPod(), nil, now)
	pays := a.payersOn(nil)
	for i := 0; pays == nil && i < len(a.cover.Offers); i++ {
		pays = a.payersOn(a.cover.Offers[i].Labels())
	}
	if pays == nil {
		return shares
	}
	gpus := make([]int, len(a.cover.Offers))
	for _, offer := range pays {
		gpus[offer] += d.GPUsPerPod
	}
	var out []Share
	for i, n := range gpus {
		if n > 0 {
			out = append(out, Share{Payer: a.cover.Offers[i].Key, GPUs: n})
		}
	}
	return out
}
