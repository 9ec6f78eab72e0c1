package budget

import (
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Repayment is an open Lease that another envelope comes to pay for, and what it takes from that one.
type Repayment struct {
	Lease  string
	Charge Charge
}

// Repay returns which of some open Leases of a Run its owner's own envelopes could pay for from an instant on, in the
// place of those who do: the first of them that they can, most at most. What a Run asks for says for whom and for how
// long. It changes nothing.
func (a *Accounts) Repay(ask Ask, leases []string, most int, now time.Time) []Repayment {
	ask.Funding, ask.Kept = nil, nil
	var out []Repayment
	defer func() {
		for i := range out {
			a.Void(repaying(out[i].Lease))
		}
	}()
	for _, lease := range leases {
		if len(out) == most {
			break
		}
		charge, open := a.charges[lease]
		if !open || charge.Relation == rqv1.RelationOwn {
			continue
		}
		payer, pays := a.ownPayer(ask, &charge, now)
		if !pays {
			continue
		}
		charge.Admitted = charge.admitted()
		charge.Payer, charge.Relation, charge.Start = payer, rqv1.RelationOwn, now
		a.Open(repaying(lease), charge) // the next may be paid for by what is left
		out = append(out, Repayment{lease, charge})
	}
	return out
}

// ownPayer returns the envelope of the owner's own that would pay for what a Lease holds.
func (a *Accounts) ownPayer(ask Ask, c *Charge, now time.Time) (Key, bool) {
	spare := useOf(c.Role) == useSpare
	ask.GPUsPerPod, ask.Spares = c.GPUs, 0
	if spare {
		ask.Spares = 1
	}
	cover := a.Cover(ask, now)
	payers := cover.Assign([]int{cover.Class(a.nodes[c.Node].labels)}, []bool{spare})
	if payers == nil || cover.Offers[payers[0]].Relation != rqv1.RelationOwn {
		return Key{}, false
	}
	return cover.Offers[payers[0]].Key, true
}

func repaying(lease string) string { return "repaying/" + lease }
