package dashboard

import (
	"cmp"
	"slices"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/cli/budgets"
	"github.com/davidlangworthy/jobtree/pkg/picture"
)

// money is who pays for what.
type money struct {
	budgets.Usage
	// Parents are the owners above each owner, of those too that have no Budget.
	Parents map[rqv1.Owner][]rqv1.Owner `json:"parents"`
	// Flows are what owners pay for others now.
	Flows []flow `json:"flows"`
}

// flow is GPUs of one owner's Runs that another owner pays for.
type flow struct {
	Payer    rqv1.Owner    `json:"payer"`
	Owner    rqv1.Owner    `json:"owner"`
	Relation rqv1.Relation `json:"relation"`
	GPUs     int32         `json:"gpus"`
}

// moneyOf returns who pays for what at an instant.
func moneyOf(o *picture.Objects, now time.Time) (money, error) {
	list := make([]rqv1.Budget, len(o.Budgets))
	accounts := budget.NewAccounts(budget.Rates{})
	for i, b := range o.Budgets {
		list[i] = *b
		accounts.SetBudget(b)
	}
	slices.SortFunc(list, func(a, b rqv1.Budget) int {
		return cmp.Or(cmp.Compare(a.Spec.Owner, b.Spec.Owner), cmp.Compare(a.Name, b.Name))
	})
	used, err := budgets.UsageOf(list, now)
	if err != nil {
		return money{}, err
	}
	m := money{Usage: used, Parents: map[rqv1.Owner][]rqv1.Owner{}, Flows: flowsOf(o.Leases)}
	var add func(owner rqv1.Owner)
	add = func(owner rqv1.Owner) {
		if _, known := m.Parents[owner]; known {
			return
		}
		m.Parents[owner] = accounts.Parents(owner)
		for _, parent := range m.Parents[owner] {
			add(parent)
		}
	}
	for i := range list {
		add(list[i].Spec.Owner)
	}
	return m, nil
}

// flowsOf adds up the open GPU leases whose payer is not their owner.
func flowsOf(leases []*rqv1.Lease) []flow {
	sums := map[flow]int32{}
	for _, lease := range leases {
		if !lease.Status.Closed && lease.Spec.Payer.Owner != lease.Spec.Owner {
			sums[flow{Payer: lease.Spec.Payer.Owner, Owner: lease.Spec.Owner, Relation: lease.Relation()}] += lease.GPUs()
		}
	}
	flows := []flow{}
	for f, gpus := range sums {
		f.GPUs = gpus
		flows = append(flows, f)
	}
	slices.SortFunc(flows, func(a, b flow) int {
		return cmp.Or(cmp.Compare(a.Payer, b.Payer), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Relation, b.Relation))
	})
	return flows
}
