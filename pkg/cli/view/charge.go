package view

import (
	"fmt"
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
