package budget

import (
	"cmp"
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

// lenders returns the owners outside a borrower's family of whom some envelope of a flavor lends to it (R4) and has
// GPUs left, those with most of them first.
func (a *Accounts) lenders(borrower rqv1.Owner, flavor string) []rqv1.Owner {
	family := map[rqv1.Owner]bool{}
	for _, s := range a.related().steps(borrower) {
		for _, owner := range s.owners {
			family[owner] = true
		}
	}
	left := map[rqv1.Owner]int{}
	for _, b := range a.budgets {
		for i := range b.Spec.Envelopes {
			e := &b.Spec.Envelopes[i]
			if e.Flavor != flavor || family[b.Spec.Owner] || !lendsTo(e.Lending, borrower) {
				continue
			}
			if free := int(e.Concurrency) - a.Used(Key{b.Name, e.Name}); free > 0 {
				left[b.Spec.Owner] += free
			}
		}
	}
	out := slices.Sorted(maps.Keys(left))
	slices.SortStableFunc(out, func(x, y rqv1.Owner) int { return cmp.Compare(left[y], left[x]) })
	return out
}
