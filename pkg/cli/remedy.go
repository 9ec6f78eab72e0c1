package cli

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
)

// remedy is something that would have more of a Run paid for.
type remedy struct {
	// What to do, as a sentence, and how many of the wanted GPUs would be paid for then.
	What        string `json:"what"`
	PayableGPUs int    `json:"payableGPUs"`
}

// sponsorsTold is how many owners who would lend are named.
const sponsorsTold = 3

// remedies are tried before they are told: each is put into a copy of the Budgets or of the Run, and the cover asked anew.
func (q *payerQuestion) remedies(cover *budget.Cover, ask budget.Ask, wanted int) ([]remedy, error) {
	var out []remedy
	for _, try := range []func(*budget.Cover, budget.Ask, int) ([]remedy, error){q.borrowMore, q.raise, q.wait, q.addSponsor} {
		found, err := try(cover, ask, wanted)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	if len(out) == 0 {
		out = append(out, remedy{fmt.Sprintf("ask for a Budget of %s with an envelope of flavor %s and concurrency %d",
			ask.Owner, ask.Flavor, q.held()+wanted), wanted})
	}
	slices.SortStableFunc(out, func(x, y remedy) int { return cmp.Compare(y.PayableGPUs, x.PayableGPUs) })
	return out, nil
}

// borrowMore raises the Run's own maxBorrowGPUs (R5).
func (q *payerQuestion) borrowMore(cover *budget.Cover, ask budget.Ask, wanted int) ([]remedy, error) {
	if ask.Funding == nil || ask.Funding.MaxBorrowGPUs == nil {
		return nil, nil
	}
	free := *ask.Funding
	free.MaxBorrowGPUs = nil
	payable, lent, err := q.borrowing(ask, free, wanted)
	if err != nil || payable <= cover.Payable() {
		return nil, err
	}
	return []remedy{{fmt.Sprintf("raise spec.funding.maxBorrowGPUs of the Run from %d to %d", *ask.Funding.MaxBorrowGPUs, lent), payable}}, nil
}

// borrowing is how much would be paid for under another funding, and what sponsors would pay for in all.
func (q *payerQuestion) borrowing(ask budget.Ask, funding rqv1.RunFunding, wanted int) (payable, lent int, err error) {
	ask.Funding = &funding
	cover, err := q.cover(q.budgets, ask, q.now)
	if err != nil {
		return 0, 0, err
	}
	lent = q.borrowed()
	for i, take := range cover.Takes(wanted / q.demand.GPUsPerPod) {
		payable += take.Pods * q.demand.GPUsPerPod
		if cover.Offers[i].Relation == rqv1.RelationSponsor {
			lent += take.Pods * q.demand.GPUsPerPod
		}
	}
	return payable, lent, nil
}

// wait waits for a window to open.
func (q *payerQuestion) wait(cover *budget.Cover, ask budget.Ask, wanted int) ([]remedy, error) {
	var opens []time.Time
	for i := range cover.Offers {
		if at := cover.Offers[i].Opens; !at.IsZero() {
			opens = append(opens, at)
		}
	}
	slices.SortFunc(opens, time.Time.Compare)
	for _, at := range opens {
		then, err := q.cover(q.budgets, ask, at)
		if err != nil {
			return nil, err
		}
		if then.Payable() >= wanted {
			return []remedy{{"wait until " + at.UTC().Format(time.RFC3339) + ", when a window opens", wanted}}, nil
		}
	}
	return nil, nil
}

// addSponsor finds owners outside the family who lend to the Run's owner and have something left.
func (q *payerQuestion) addSponsor(cover *budget.Cover, ask budget.Ask, wanted int) ([]remedy, error) {
	var funding rqv1.RunFunding
	if ask.Funding != nil {
		funding = *ask.Funding
	}
	asked := append([]rqv1.Owner{ask.Owner}, funding.Sponsors...)
	var out []remedy
	for _, owner := range q.owners() {
		if slices.Contains(asked, owner) {
			continue
		}
		more := rqv1.RunFunding{AllowBorrow: true, Sponsors: append(slices.Clone(funding.Sponsors), owner)}
		payable, lent, err := q.borrowing(ask, more, wanted)
		if err != nil {
			return nil, err
		}
		without := more
		without.Sponsors = funding.Sponsors
		before, _, err := q.borrowing(ask, without, wanted)
		if err != nil {
			return nil, err
		}
		if payable <= max(before, cover.Payable()) {
			continue
		}
		what := fmt.Sprintf("add %s to spec.funding.sponsors of the Run: it would lend %d GPUs", owner, payable-before)
		if !funding.AllowBorrow {
			what = fmt.Sprintf("set spec.funding.allowBorrow of the Run and add %s to spec.funding.sponsors: it would lend %d GPUs", owner, payable-before)
		}
		if most := funding.MaxBorrowGPUs; most != nil && lent > int(*most) {
			what += fmt.Sprintf(", if maxBorrowGPUs is raised to %d", lent)
		}
		out = append(out, remedy{what, payable})
	}
	slices.SortStableFunc(out, func(x, y remedy) int { return cmp.Compare(y.PayableGPUs, x.PayableGPUs) })
	return out[:min(len(out), sponsorsTold)], nil
}

// owners are all who have a Budget, sorted.
func (q *payerQuestion) owners() []rqv1.Owner {
	owners := make([]rqv1.Owner, len(q.budgets))
	for i := range q.budgets {
		owners[i] = q.budgets[i].Spec.Owner
	}
	slices.Sort(owners)
	return slices.Compact(owners)
}
