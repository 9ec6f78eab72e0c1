package plan

import (
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
)

// Advice is what is told beside a refusal: who was asked to pay, in order (R2), and, where money is short, what would
// help.
type Advice struct {
	Payers  []Payer
	Changes []budget.Change
}

// Payer is one envelope that was asked, or a sponsor that does not lend.
type Payer struct {
	// Key is empty for a sponsor that does not lend.
	Key      budget.Key
	Owner    rqv1.Owner
	Relation rqv1.Relation
	// Step of the order in which envelopes pay, from 0.
	Step int
	// GPUs that it would pay for.
	GPUs int
	// Refusal says why it does not take part; empty when it does.
	Refusal string
	// Limit is what keeps it from paying for more; its Kind is empty where money is not what is short.
	Limit budget.Limit
}

// Advise says who was asked to pay for a Run that has been refused, and what would help. It changes nothing.
func Advise(accounts *budget.Accounts, d Demand, claim Claim, opportunistic bool, r *Refusal, now time.Time) *Advice {
	ask := budget.Ask{Owner: d.Owner, Flavor: d.Flavor, GPUsPerPod: d.GPUsPerPod, Opportunistic: opportunistic,
		Run:     claim.Run,
		Funding: claim.Funding, MaxDuration: claim.lasts(now), Owed: claim.Owed}
	if !opportunistic {
		ask.Spares = d.Spares()
	}
	wanted := r.WantedGPUs
	if !r.LacksMoney() {
		wanted = d.HeldGPUs()
	}
	cover, out := accounts.Cover(ask, now), &Advice{}
	for i, take := range cover.Takes(wanted / d.GPUsPerPod) {
		o := &cover.Offers[i]
		if o.Untold {
			continue
		}
		p := Payer{Key: o.Key, Owner: o.Owner, Relation: o.Relation, Step: o.Step, GPUs: take.Pods * d.GPUsPerPod,
			Refusal: o.Refusal}
		if r.LacksMoney() && o.Refusal == "" {
			p.Limit = take.Limit
		}
		out.Payers = append(out.Payers, p)
	}
	if r.LacksMoney() && wanted > cover.Payable() {
		out.Changes = accounts.Changes(ask, wanted, now)
	}
	return out
}
