package explain

import (
	"slices"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// addHolding adds an open GPU lease to what its group holds in a domain from the same payer.
func addHolding(holdings []holding, lease *rqv1.Lease, domains map[string]string) []holding {
	for _, node := range lease.Spec.Slice.Nodes {
		next := holding{
			Group:    lease.Spec.GroupIndex,
			Role:     lease.Spec.Slice.Role,
			Domain:   domains[node.Name],
			Budget:   lease.Spec.Payer.Budget,
			Envelope: lease.Spec.PaidByEnvelope,
			Payer:    lease.Spec.Payer.Owner,
		}
		i := slices.IndexFunc(holdings, func(h holding) bool {
			h.Nodes, h.GPUs = nil, 0
			return h.Group == next.Group && h.Role == next.Role && h.Domain == next.Domain &&
				h.Budget == next.Budget && h.Envelope == next.Envelope && h.Payer == next.Payer
		})
		if i < 0 {
			i = len(holdings)
			holdings = append(holdings, next)
		}
		holdings[i].GPUs += node.GPUs
		if !slices.Contains(holdings[i].Nodes, node.Name) {
			holdings[i].Nodes = append(holdings[i].Nodes, node.Name)
			slices.Sort(holdings[i].Nodes)
		}
	}
	return holdings
}

// addLost adds the work that was lost with a GPU lease to what was lost by the same doing.
func addLost(all []lostWork, lease *rqv1.Lease) []lostWork {
	lost, cause := lease.Status.Lost, lease.Status.Cause
	if lost == nil {
		return all
	}
	i := slices.IndexFunc(all, func(w lostWork) bool { return w.Cause == cause })
	if i < 0 {
		i = len(all)
		all = append(all, lostWork{Cause: cause})
	}
	all[i].seconds += lost.GPUSeconds + lost.OthersGPUSeconds
	all[i].GPUHours = (budget.Spend(all[i].seconds) * budget.GPUSecond).String()
	return all
}

// addGivenUp adds a closed GPU lease to those of the same reason.
func addGivenUp(given []givenUp, lease *rqv1.Lease) []givenUp {
	i := slices.IndexFunc(given, func(g givenUp) bool { return g.Reason == lease.Status.ClosureReason })
	if i < 0 {
		i = len(given)
		given = append(given, givenUp{Reason: lease.Status.ClosureReason})
	}
	given[i].Leases++
	given[i].GPUs += lease.GPUs()
	if ended := lease.Status.Ended; ended != nil && ended.After(given[i].Last.Time) {
		given[i].Last = *ended
	}
	return given
}

// usedBy adds up what the GPU leases of a Run tell; nil when there are none.
func usedBy(leases []rqv1.Lease, now time.Time) *used {
	all := make([]*rqv1.Lease, len(leases))
	for i := range leases {
		all[i] = &leases[i]
	}
	if len(all) == 0 {
		return nil
	}
	u, err := view.UsageOf(all, now)
	if err != nil {
		return nil // the API takes no GPU lease without a rate
	}
	out := &used{ElapsedSeconds: u.Seconds, GPUHours: view.Number(u.Spend)}
	if u.Last != nil {
		out.Nodes = u.Nodes
	}
	return out
}
