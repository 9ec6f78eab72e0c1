package integration

import (
	"fmt"
	"slices"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// tally is what the open Leases of one envelope hold, in GPUs.
type tally struct{ owned, family, lent, spare, opportunistic, lending int32 }

// granted is what an envelope's status counts as within its limits, and holds what counts against its concurrency.
func granted(e *rqv1.EnvelopeStatus) int32 {
	return e.OwnedGPUs + e.FamilyGPUs + e.LentGPUs + e.SpareGPUs
}

func holds(e *rqv1.EnvelopeStatus) int32 { return granted(e) + e.OverdraftGPUs }

// tallies adds up the open Leases by Budget and envelope.
func (w *world) tallies() map[[2]string]*tally {
	out := map[[2]string]*tally{}
	for i := range w.leases {
		lease := &w.leases[i]
		if lease.Status.Closed {
			continue
		}
		payer := [2]string{lease.Spec.Payer.Budget, lease.Spec.PaidByEnvelope}
		if out[payer] == nil {
			out[payer] = &tally{}
		}
		for _, held := range lease.Spec.Slice.Nodes {
			out[payer].add(lease, held.GPUs)
		}
	}
	return out
}

func (t *tally) add(lease *rqv1.Lease, gpus int32) {
	relation, role := lease.Spec.Payer.Relation, lease.Spec.Slice.Role
	switch {
	case role == rqv1.RoleBorrowed:
		t.opportunistic += gpus
		return
	case role == rqv1.RoleSpare:
		t.spare += gpus
	case relation == rqv1.RelationOwn:
		t.owned += gpus
	case relation == rqv1.RelationSponsor:
		t.lent += gpus
	default:
		t.family += gpus
	}
	if relation == rqv1.RelationSponsor {
		t.lending += gpus
	}
}

// miscounted finds Budgets whose status is not what their open Leases add up to (I8). Overdraft may be any part of it.
func (w *world) miscounted() []string {
	var out []string
	tallies := w.tallies()
	for i := range w.budgets {
		b, used, overdraft := &w.budgets[i], int32(0), int32(0)
		for _, e := range b.Status.Envelopes {
			t := tallies[[2]string{b.Name, e.Name}]
			if t == nil {
				t = &tally{}
			}
			delete(tallies, [2]string{b.Name, e.Name})
			used += holds(&e)
			overdraft += e.OverdraftGPUs
			most := tally{e.OwnedGPUs, e.FamilyGPUs, e.LentGPUs, e.SpareGPUs, e.OpportunisticGPUs, e.LendingGPUs}
			if most.owned > t.owned || most.family > t.family || most.lent > t.lent || most.spare > t.spare ||
				most.opportunistic != t.opportunistic || most.lending != t.lending || holds(&e) != t.owned+t.family+t.lent+t.spare {
				out = append(out, fmt.Sprintf("I8: Budget %s says %+v, its open Leases %+v", b.Name, e, *t))
			}
		}
		for _, cap := range b.Status.AggregateCaps {
			if under := w.under(b, cap.Name, holds); cap.UsedGPUs != under {
				out = append(out, fmt.Sprintf("I8: aggregate cap %s of Budget %s counts %d GPUs, its envelopes %d", cap.Name, b.Name, cap.UsedGPUs, under))
			}
		}
		for payer, t := range tallies {
			if payer[0] == b.Name {
				out = append(out, fmt.Sprintf("I8: Budget %s says nothing of envelope %s, whose open Leases hold %+v", b.Name, payer[1], *t))
			}
		}
		if b.Status.UsedGPUs != used || b.Status.OverdraftGPUs != overdraft {
			out = append(out, fmt.Sprintf("I8: Budget %s says %d GPUs used and %d overdraft, its envelopes and Leases %d and %d",
				b.Name, b.Status.UsedGPUs, b.Status.OverdraftGPUs, used, overdraft))
		}
	}
	return out
}

// under adds up something over the envelopes under an aggregate cap.
func (w *world) under(b *rqv1.Budget, name string, what func(*rqv1.EnvelopeStatus) int32) int32 {
	sum := int32(0)
	for _, cap := range b.Spec.AggregateCaps {
		for i := range b.Status.Envelopes {
			if e := &b.Status.Envelopes[i]; cap.Name == name && slices.Contains(cap.Envelopes, e.Name) {
				sum += what(e)
			}
		}
	}
	return sum
}

// overspent finds limits below what is held within limits, and overdraft where no limit was ever edited (I3).
func (w *world) overspent() []string {
	var out []string
	exceeds := func(b *rqv1.Budget, limit string, held int32, most *int32) {
		if most != nil && held > *most {
			out = append(out, fmt.Sprintf("I3: %s of Budget %s allows %d GPUs, and %d are within it", limit, b.Name, *most, held))
		}
	}
	for i := range w.budgets {
		b := &w.budgets[i]
		for j := range b.Status.Envelopes {
			e := &b.Status.Envelopes[j]
			at := slices.IndexFunc(b.Spec.Envelopes, func(spec rqv1.Envelope) bool { return spec.Name == e.Name })
			if at < 0 {
				continue // edited since
			}
			exceeds(b, "envelope "+e.Name, granted(e), &b.Spec.Envelopes[at].Concurrency)
			if lending := b.Spec.Envelopes[at].Lending; lending != nil {
				exceeds(b, "lending of envelope "+e.Name, e.LentGPUs, lending.MaxConcurrency)
			}
		}
		for _, cap := range b.Spec.AggregateCaps {
			exceeds(b, "aggregate cap "+cap.Name, w.under(b, cap.Name, granted), cap.MaxConcurrency)
		}
		if b.Status.OverdraftGPUs > 0 && w.constant() {
			out = append(out, fmt.Sprintf("I3: Budget %s has an overdraft of %d GPUs, and no limit has changed", b.Name, b.Status.OverdraftGPUs))
		}
	}
	return out
}

// constant tells whether what the Budgets allow has always been the same: they are as they were created, and neither time
// nor use takes anything away.
func (w *world) constant() bool {
	for i := range w.budgets {
		b := &w.budgets[i]
		if b.Generation > 1 || slices.ContainsFunc(b.Spec.Envelopes, func(e rqv1.Envelope) bool {
			return e.End != nil || e.MaxGPUHours != nil || e.Lending != nil && e.Lending.MaxGPUHours != nil
		}) || slices.ContainsFunc(b.Spec.AggregateCaps, func(c rqv1.AggregateCap) bool { return c.MaxGPUHours != nil }) {
			return false
		}
	}
	return true
}
