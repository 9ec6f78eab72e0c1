package audit

import (
	"slices"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// cutOff is what five decimals of a GPU-hour do not tell, of two amounts.
const cutOff = 2 * budget.GPUHour / 100000

// hours replays the ledger as of when each Budget's status was written, and finds GPU-hours that it does not come to
// (I8).
func (s *sight) hours() {
	if !s.Whole {
		return
	}
	records := map[string]*budget.Record{}
	for i := range s.Records {
		records[s.Records[i].Budget] = &s.Records[i]
	}
	leases := map[string][]*rqv1.Lease{}
	for _, lease := range s.Leases {
		leases[lease.Spec.Payer.Budget] = append(leases[lease.Spec.Payer.Budget], lease)
	}
	for _, b := range s.Budgets {
		at, record := b.Status.ObservedAt, records[b.Name]
		if at == nil || b.Status.ObservedGeneration != b.Generation || record != nil && record.Through >= at.Unix() {
			continue
		}
		a := budget.NewAccounts(s.Rates)
		a.SetBudget(b)
		if record != nil {
			a.SetRecord(*record)
		}
		slack := s.replay(a, leases[b.Name], at.Time)
		s.recount(b, a.Status(b, at.Time), slack)
	}
}

// replay charges GPU leases as they stood at an instant, and returns what a status may count beyond that, by envelope:
// a lease that had just ended may not have been closed yet, and one that had just begun have counted from when its
// place was planned.
func (s *sight) replay(a *budget.Accounts, leases []*rqv1.Lease, at time.Time) map[string]budget.Spend {
	slack, longest := map[string]budget.Spend{}, s.longestStart()
	for _, lease := range leases {
		c, ended := chargeOf(lease), lease.Status.Ended
		before := time.Duration(0)
		switch {
		case c.Start.Unix() > at.Unix():
			continue
		case ended != nil && ended.Unix() <= at.Unix():
			a.Past(nameOf(lease), c, ended.Time)
			if at.Sub(ended.Time) < writing {
				before = writing
			}
		default:
			a.Open(nameOf(lease), c)
		}
		if at.Sub(c.Start) < writing {
			before += longest + late
		}
		slack[c.Payer.Envelope] += budget.Spend(int64(c.GPUs) * int64(before/time.Second) * int64(c.Rate))
	}
	return slack
}

// longestStart is how long a gang may be charged for places that have no Leases.
func (s *sight) longestStart() time.Duration {
	if slices.ContainsFunc(s.Runs, func(run *rqv1.Run) bool { return run.Spec.TheirsComeLate() }) {
		return rank.LongestStart * s.GangDeadline
	}
	return s.GangDeadline
}

// recount compares the GPU-hours of a status with those of a replay. What the status counts beyond the replayed GPUs
// had been given to somebody whose Lease was not written yet, who may have been charged for as long as a gang may take.
func (s *sight) recount(b *rqv1.Budget, replayed rqv1.BudgetStatus, slack map[string]budget.Spend) {
	said := map[string]*rqv1.EnvelopeStatus{}
	for i := range b.Status.Envelopes {
		said[b.Status.Envelopes[i].Name] = &b.Status.Envelopes[i]
	}
	for i := range replayed.Envelopes {
		is := &replayed.Envelopes[i]
		was := said[is.Name]
		if was == nil || was.GPUHours == nil || is.GPUHours == nil {
			continue
		}
		most := slack[is.Name] + cutOff
		if early := holds(was) + was.OpportunisticGPUs - holds(is) - is.OpportunisticGPUs; early > 0 {
			most += budget.Spend(early) * budget.Spend((s.longestStart()+late)/time.Second) * budget.GPUSecond
		}
		for _, kind := range []struct{ name, said, replayed string }{
			{"spent", was.GPUHours.Spent, is.GPUHours.Spent},
			{"owned", was.GPUHours.Owned, is.GPUHours.Owned}, {"family", was.GPUHours.Family, is.GPUHours.Family},
			{"lent", was.GPUHours.Lent, is.GPUHours.Lent}, {"spare", was.GPUHours.Spare, is.GPUHours.Spare},
			{"opportunistic", was.GPUHours.Opportunistic, is.GPUHours.Opportunistic},
			{"lending", was.GPUHours.Lending, is.GPUHours.Lending},
		} {
			x, err := budget.ParseSpend(kind.said)
			y, err2 := budget.ParseSpend(kind.replayed)
			if err == nil && err2 == nil && y-x <= cutOff && x-y <= most {
				continue
			}
			s.find("I8", is.Name+" hours", []Object{object("Budget", b)},
				"the status of Budget %s says that envelope %s has %s GPU-hours (%s), and the ledger comes to %s at %s",
				b.Name, is.Name, orNone(kind.said), kind.name, orNone(kind.replayed),
				b.Status.ObservedAt.UTC().Format(time.RFC3339))
			break
		}
	}
}

func orNone(hours string) string {
	if hours == "" {
		return "0.00000"
	}
	return hours
}
