package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
)

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
		limit := cover.Takes(wanted / q.demand.GPUsPerPod)[i].Limit
		edit := raiseLimit(&budgets[at], key.Envelope, limit, short, q.demand.GPUsPerPod, budget.Lookahead(ask.MaxDuration))
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
