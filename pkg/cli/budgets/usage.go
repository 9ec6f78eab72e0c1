package budgets

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// Usage is what is held and spent of some Budgets. It is what "kubectl runs budgets usage" prints, as text or as
// data.
type Usage struct {
	At            metav1.Time       `json:"at"`
	Envelopes     []envelopeUsage   `json:"envelopes"`
	AggregateCaps []capUsage        `json:"aggregateCaps"`
	Conditions    []budgetCondition `json:"conditions"`
}

// envelopeUsage is what is held and spent of one envelope.
type envelopeUsage struct {
	Owner    rqv1.Owner   `json:"owner"`
	Budget   string       `json:"budget"`
	Envelope string       `json:"envelope"`
	Flavor   string       `json:"flavor"`
	Start    *metav1.Time `json:"start,omitempty"`
	End      *metav1.Time `json:"end,omitempty"`
	// ObservedAt is nil until the scheduler has looked at the envelope.
	ObservedAt        *metav1.Time `json:"observedAt,omitempty"`
	Concurrency       int32        `json:"concurrency"`
	OwnedGPUs         int32        `json:"ownedGPUs"`
	FamilyGPUs        int32        `json:"familyGPUs"`
	LentGPUs          int32        `json:"lentGPUs"`
	SpareGPUs         int32        `json:"spareGPUs"`
	OverdraftGPUs     int32        `json:"overdraftGPUs"`
	OpportunisticGPUs int32        `json:"opportunisticGPUs"`
	FreeGPUs          int32        `json:"freeGPUs"`
	LendableGPUs      int32        `json:"lendableGPUs"`
	hoursUsage        `json:",inline"`
	LostGPUHours      json.Number `json:"lostGPUHours"`
	// LostByCause adds up to LostGPUHours.
	LostByCause []lostUsage `json:"lostByCause"`
}

// lostUsage is work that was lost by somebody's doing.
type lostUsage struct {
	Cause    rqv1.EndCause `json:"cause"`
	GPUHours json.Number   `json:"gpuHours"`
}

// held is what counts against the concurrency.
func (e *envelopeUsage) held() int32 {
	return e.OwnedGPUs + e.FamilyGPUs + e.LentGPUs + e.SpareGPUs + e.OverdraftGPUs
}

// capUsage is what is held and spent under one aggregate cap.
type capUsage struct {
	Owner          rqv1.Owner   `json:"owner"`
	Budget         string       `json:"budget"`
	Cap            string       `json:"cap"`
	Flavor         string       `json:"flavor"`
	Envelopes      []string     `json:"envelopes"`
	ObservedAt     *metav1.Time `json:"observedAt,omitempty"`
	MaxConcurrency *int32       `json:"maxConcurrency,omitempty"`
	UsedGPUs       int32        `json:"usedGPUs"`
	FreeGPUs       *int32       `json:"freeGPUs,omitempty"`
	hoursUsage     `json:",inline"`
}

// budgetCondition says what is wrong with a Budget.
type budgetCondition struct {
	Owner   rqv1.Owner `json:"owner"`
	Budget  string     `json:"budget"`
	Type    string     `json:"type"`
	Reason  string     `json:"reason"`
	Message string     `json:"message"`
}

// hoursUsage is what is spent of a limit in GPU-hours; all but the last are decimals.
type hoursUsage struct {
	MaxGPUHours      *int64       `json:"maxGPUHours,omitempty"`
	SpentGPUHours    json.Number  `json:"spentGPUHours"`
	LeftGPUHours     *json.Number `json:"leftGPUHours,omitempty"`
	PromisedGPUHours json.Number  `json:"promisedGPUHours"`
	HourlyGPUHours   json.Number  `json:"hourlyGPUHours"`
	RunsOut          *metav1.Time `json:"runsOut,omitempty"`
}

// UsageOf reads what is held and spent from the status of Budgets, and carries it on to now.
func UsageOf(budgets []rqv1.Budget, now time.Time) (Usage, error) {
	u := Usage{At: metav1.Time{Time: now.Truncate(time.Second)},
		Envelopes: []envelopeUsage{}, AggregateCaps: []capUsage{}, Conditions: []budgetCondition{}}
	for i := range budgets {
		b := &budgets[i]
		for j := range b.Spec.Envelopes {
			row, err := envelopeUsageOf(b, &b.Spec.Envelopes[j], now)
			if err != nil {
				return u, fmt.Errorf("status of Budget %s, envelope %s: %w", b.Name, row.Envelope, err)
			}
			u.Envelopes = append(u.Envelopes, row)
		}
		for j := range b.Spec.AggregateCaps {
			row, err := capUsageOf(b, &b.Spec.AggregateCaps[j], now)
			if err != nil {
				return u, fmt.Errorf("status of Budget %s, aggregate cap %s: %w", b.Name, row.Cap, err)
			}
			u.AggregateCaps = append(u.AggregateCaps, row)
		}
		for _, kind := range []string{rqv1.ConditionOverdrawn, rqv1.ConditionCircular} {
			if c := meta.FindStatusCondition(b.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
				u.Conditions = append(u.Conditions, budgetCondition{b.Spec.Owner, b.Name, c.Type, c.Reason, c.Message})
			}
		}
	}
	return u, nil
}

func envelopeUsageOf(b *rqv1.Budget, e *rqv1.Envelope, now time.Time) (envelopeUsage, error) {
	row := envelopeUsage{Owner: b.Spec.Owner, Budget: b.Name, Envelope: e.Name, Flavor: e.Flavor, Start: e.Start,
		End:         e.End,
		Concurrency: e.Concurrency}
	at := slices.IndexFunc(b.Status.Envelopes, func(s rqv1.EnvelopeStatus) bool { return s.Name == e.Name })
	var hours *rqv1.GPUHours
	if at >= 0 {
		s := &b.Status.Envelopes[at]
		hours = s.GPUHours
		row.ObservedAt = b.Status.ObservedAt
		row.OwnedGPUs, row.FamilyGPUs, row.LentGPUs, row.SpareGPUs = s.OwnedGPUs, s.FamilyGPUs, s.LentGPUs, s.SpareGPUs
		row.OverdraftGPUs, row.OpportunisticGPUs = s.OverdraftGPUs, s.OpportunisticGPUs
		row.FreeGPUs, row.LendableGPUs = s.HeadroomGPUs, s.LendableGPUs
	}
	var err error
	row.hoursUsage, err = hoursUsageOf(hours, e.MaxGPUHours, span{from: b.Status.ObservedAt, start: e.Start, end: e.End},
		now)
	if err != nil {
		return row, err
	}
	row.LostByCause, row.LostGPUHours, err = lostUsageOf(hours)
	return row, err
}

// lostUsageOf returns the work that was lost, by cause and in all.
func lostUsageOf(seen *rqv1.GPUHours) (byCause []lostUsage, all json.Number, err error) {
	byCause = []lostUsage{}
	var sum budget.Spend
	if seen != nil {
		for _, l := range seen.Lost {
			lost, err := budget.ParseSpend(l.GPUHours)
			if err != nil {
				return nil, "", err
			}
			byCause = append(byCause, lostUsage{l.Cause, view.Number(lost)})
			sum += lost
		}
	}
	return byCause, view.Number(sum), nil
}

func capUsageOf(b *rqv1.Budget, c *rqv1.AggregateCap, now time.Time) (capUsage, error) {
	row := capUsage{Owner: b.Spec.Owner, Budget: b.Name, Cap: c.Name, Flavor: c.Flavor, Envelopes: c.Envelopes,
		MaxConcurrency: c.MaxConcurrency}
	at := slices.IndexFunc(b.Status.AggregateCaps, func(s rqv1.AggregateCapStatus) bool { return s.Name == c.Name })
	var hours *rqv1.GPUHours
	if at >= 0 {
		s := &b.Status.AggregateCaps[at]
		hours = s.GPUHours
		row.ObservedAt, row.UsedGPUs, row.FreeGPUs = b.Status.ObservedAt, s.UsedGPUs, s.HeadroomGPUs
	}
	var err error
	row.hoursUsage, err = hoursUsageOf(hours, c.MaxGPUHours, span{from: b.Status.ObservedAt}, now)
	return row, err
}

// span is the time in which GPU-hours count: from when they were observed, in a window; nil is open.
type span struct{ from, start, end *metav1.Time }

// elapsed is for how many seconds spending has gone on unobserved: not before the window opens, and never backwards,
// whatever this machine's clock says.
func (s span) elapsed(now time.Time) int64 {
	if s.from == nil {
		return 0
	}
	from := s.from.Unix()
	if s.start != nil {
		from = max(from, s.start.Unix())
	}
	return max(0, now.Unix()-from)
}

// hoursUsageOf carries observed GPU-hours on to now at their rate, and says when that rate spends what is left.
func hoursUsageOf(seen *rqv1.GPUHours, most *int64, s span, now time.Time) (hoursUsage, error) {
	if seen == nil {
		seen = &rqv1.GPUHours{}
	}
	var read [3]budget.Spend
	for i, text := range []string{seen.Spent, seen.Promised, seen.Hourly} {
		var err error
		if read[i], err = budget.ParseSpend(text); err != nil {
			return hoursUsage{}, err
		}
	}
	spent, promised, hourly := read[0], read[1], read[2]
	perSecond := hourly / 3600
	if elapsed := s.elapsed(now); perSecond > 0 {
		spent += perSecond * min(budget.Spend(elapsed), (math.MaxInt64-spent)/perSecond)
	}
	row := hoursUsage{MaxGPUHours: most, SpentGPUHours: view.Number(spent), PromisedGPUHours: view.Number(promised),
		HourlyGPUHours: view.Number(hourly)}
	if most != nil {
		left := max(0, budget.Spend(*most)*budget.GPUHour-spent)
		text := view.Number(left)
		row.LeftGPUHours, row.RunsOut = &text, runsOut(left, perSecond, s.end, now)
	}
	return row, nil
}

// foreseeable is the longest in which what is left is said to run out.
const foreseeable = 100 * 365 * 24 * 3600

// runsOut is when what is left is spent; nil when it is not, before a window ends or in a lifetime.
func runsOut(left, perSecond budget.Spend, end *metav1.Time, now time.Time) *metav1.Time {
	if perSecond <= 0 || left <= 0 {
		return nil
	}
	seconds := (left + perSecond - 1) / perSecond
	if seconds > foreseeable {
		return nil
	}
	out := now.Truncate(time.Second).Add(time.Duration(seconds) * time.Second)
	if end != nil && !out.Before(end.Time) {
		return nil
	}
	return &metav1.Time{Time: out}
}
