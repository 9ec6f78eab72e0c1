package view

import (
	"fmt"
	"slices"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
)

// Charge is what one GPU lease is charged, as the scheduler counts (R7): the whole seconds between two instants of
// Unix time, times the GPUs, times the rate.
type Charge struct {
	Seconds int64
	Rate    budget.Rate
	Spend   budget.Spend
}

// ChargeOf counts an open GPU lease until now; never less than nothing, whatever this machine's clock says.
func ChargeOf(lease *rqv1.Lease, now time.Time) (Charge, error) {
	rate, err := budget.ParseRate(lease.Spec.Payer.Rate)
	if err != nil {
		return Charge{}, fmt.Errorf("GPU lease %s/%s: %w", lease.Namespace, lease.Name, err)
	}
	if lease.Status.Ended != nil {
		now = lease.Status.Ended.Time
	}
	seconds := max(0, now.Unix()-lease.Spec.Start.Unix())
	return Charge{seconds, rate, budget.Spend(seconds) * budget.Spend(lease.GPUs()) * budget.Spend(rate)}, nil
}

// Usage is what a Run has used by its GPU leases.
type Usage struct {
	Started time.Time
	// Last is the GPU lease that ended last; nil as long as one is open.
	Last *rqv1.Lease
	// Seconds from the first start until the last end, or until now.
	Seconds int64
	Spend   budget.Spend
	// Nodes on which it held GPUs, in order.
	Nodes []string
}

// UsageOf adds up the GPU leases of one Run, of which there is one at least.
func UsageOf(leases []*rqv1.Lease, now time.Time) (Usage, error) {
	u, open := Usage{Started: leases[0].Spec.Start.Time}, false
	for _, lease := range leases {
		charge, err := ChargeOf(lease, now)
		if err != nil {
			return Usage{}, err
		}
		u.Spend += charge.Spend
		if lease.Spec.Start.Time.Before(u.Started) {
			u.Started = lease.Spec.Start.Time
		}
		switch {
		case lease.Status.Ended == nil:
			open = true
		case u.Last == nil || u.Last.Status.Ended.Before(lease.Status.Ended):
			u.Last = lease
		}
		for _, node := range lease.Spec.Slice.Nodes {
			u.Nodes = append(u.Nodes, node.Name)
		}
	}
	slices.Sort(u.Nodes)
	u.Nodes = slices.Compact(u.Nodes)
	until := now
	if open {
		u.Last = nil
	} else {
		until = u.Last.Status.Ended.Time
	}
	u.Seconds = max(0, until.Unix()-u.Started.Unix())
	return u, nil
}
