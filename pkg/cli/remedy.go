package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
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
	for i, take := range cover.Takes(wanted / q.pods) {
		payable += take.Pods * q.pods
		if cover.Offers[i].Relation == rqv1.RelationSponsor {
			lent += take.Pods * q.pods
		}
	}
	return payable, lent, nil
}

// raise raises limits of the first envelope for which that is enough.
func (q *payerQuestion) raise(cover *budget.Cover, ask budget.Ask, wanted int) ([]remedy, error) {
	for i := range cover.Offers {
		if cover.Offers[i].Refusal != "" {
			continue
		}
		edits, enough, err := q.raiseOne(cover.Offers[i].Key, ask, wanted)
		if err != nil {
			return nil, err
		}
		if enough {
			return []remedy{{"raise " + strings.Join(edits, ", and "), wanted}}, nil
		}
	}
	return nil, nil
}

// limitsRaised is the most limits over one envelope that are raised together: each kind there is, twice.
const limitsRaised = 12

// raiseOne raises one limit over an envelope after the other, until all is paid for or none of them is in the way.
func (q *payerQuestion) raiseOne(key budget.Key, ask budget.Ask, wanted int) (edits []string, enough bool, err error) {
	budgets := slices.Clone(q.budgets)
	at := slices.IndexFunc(budgets, func(b rqv1.Budget) bool { return b.Name == key.Budget })
	raised := map[string]string{}
	var order []string
	for range limitsRaised {
		cover, err := q.cover(budgets, ask, q.now)
		if err != nil {
			return nil, false, err
		}
		short := wanted - cover.Payable()
		if short <= 0 {
			for _, name := range order {
				edits = append(edits, raised[name])
			}
			return edits, true, nil
		}
		i := slices.IndexFunc(cover.Offers, func(o budget.Offer) bool { return o.Key == key })
		limit := cover.Takes(wanted / q.pods)[i].Limit
		edit := raiseLimit(&budgets[at], key.Envelope, limit, short, q.pods, budget.Lookahead(ask.MaxDuration))
		if edit.budget == nil {
			return nil, false, nil
		}
		budgets[at] = *edit.budget
		if raised[edit.field] == "" {
			order = append(order, edit.field)
			raised[edit.field] = fmt.Sprintf("%s of Budget %s from %d", edit.field, key.Budget, edit.from)
		}
		raised[edit.field], _, _ = strings.Cut(raised[edit.field], " to ")
		raised[edit.field] += fmt.Sprintf(" to %d", edit.to)
	}
	return nil, false, nil
}

// raising is an edit of a Budget: one limit is higher.
type raising struct {
	budget   *rqv1.Budget
	field    string
	from, to int64
}

// raiseLimit raises a limit over an envelope by what so many GPUs take from it for a time, and by its overdraft; what a
// pod is too large for is used. The Budget is nil when it is not the Budget that sets the limit.
func raiseLimit(b *rqv1.Budget, envelope string, l budget.Limit, gpus, pod int, held time.Duration) raising {
	out := b.DeepCopy()
	e := &out.Spec.Envelopes[slices.IndexFunc(out.Spec.Envelopes, func(e rqv1.Envelope) bool { return e.Name == envelope })]
	field, number, hours := "envelopes["+envelope+"]."+string(l.Kind), &e.Concurrency, e.MaxGPUHours
	switch {
	case l.Cap != "":
		c := &out.Spec.AggregateCaps[slices.IndexFunc(out.Spec.AggregateCaps, func(c rqv1.AggregateCap) bool { return c.Name == l.Cap })]
		field, number, hours = "aggregateCaps["+l.Cap+"].maxConcurrency", c.MaxConcurrency, c.MaxGPUHours
		if l.Hours() {
			field = "aggregateCaps[" + l.Cap + "].maxGPUHours"
		}
	case l.Kind == budget.LendingConcurrency || l.Kind == budget.LendingGPUHours:
		number, hours = e.Lending.MaxConcurrency, e.Lending.MaxGPUHours
	case l.Kind != budget.Concurrency && l.Kind != budget.GPUHours:
		return raising{}
	}
	if !l.Hours() {
		from := int64(*number)
		*number += int32(int64(gpus) - unused(l.Left, int64(pod)))
		return raising{out, field, from, int64(*number)}
	}
	from := *hours
	each := budget.Spend(held/time.Second) * budget.GPUSecond
	need := budget.Spend(gpus)*each - budget.Spend(unused(l.Left, int64(pod)*int64(each)))
	*hours += int64((max(need, 1) + budget.GPUHour - 1) / budget.GPUHour)
	return raising{out, field, from, *hours}
}

// unused is what is left of a limit when as many pods as fit have taken their part; the whole of it when it is overdrawn.
func unused(left, pod int64) int64 {
	if left < 0 {
		return left
	}
	return left % pod
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
