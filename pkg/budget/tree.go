package budget

import (
	"maps"
	"slices"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Parents returns the owners right above an owner in the family, sorted (R2): those that its Budgets name, else the
// nearest ancestor in the colon path that has a Budget. Parents that would make a circle are left out.
func (a *Accounts) Parents(owner rqv1.Owner) []rqv1.Owner { return a.related().parentsOf(owner) }

// Take is the part of one offer in a number of pods.
type Take struct {
	// Pods that the offer pays for.
	Pods int
	// Limit is what keeps it from paying for more of those that are left; its Kind is empty when there are none left.
	Limit Limit
}

// Takes returns how many of a number of pods each offer pays for, in the order of Offers, wherever their selectors
// allow. The sum is what Payable says, but no more than is asked for; it may be less where aggregate caps overlap.
func (c *Cover) Takes(pods int) []Take {
	out, _ := c.takes(pods)
	return out
}

// takes returns also how many pods each limit lets in after that.
func (c *Cover) takes(pods int) (out []Take, room []int) {
	room = c.room(optimistic)
	out = make([]Take, len(c.Offers))
	for i := range c.Offers {
		o := &c.Offers[i]
		out[i].Pods = c.payers.Take(i, pods, room)
		pods -= out[i].Pods
		if pods == 0 {
			continue
		}
		out[i].Limit = o.Limit
		for _, l := range o.limits {
			if room[l] <= 0 {
				out[i].Limit = c.limits[l].Limit
				break
			}
		}
	}
	return out, room
}

// Lenders returns the owners outside a borrower's family that have an envelope which lends to it, sorted (R4).
func (a *Accounts) Lenders(borrower rqv1.Owner) []rqv1.Owner {
	lenders := map[rqv1.Owner]bool{}
	for _, b := range a.budgets {
		if _, family := a.related().relation(borrower, b.Spec.Owner); family {
			continue
		}
		for i := range b.Spec.Envelopes {
			if l := b.Spec.Envelopes[i].Lending; l != nil && l.Allow && Admits(l.To, borrower) {
				lenders[b.Spec.Owner] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(lenders))
}
