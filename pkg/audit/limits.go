package audit

import (
	"slices"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
)

// granted is what a status counts as within an envelope's limits, and holds what counts against its concurrency.
func granted(e *rqv1.EnvelopeStatus) int32 {
	return e.OwnedGPUs + e.FamilyGPUs + e.LentGPUs + e.SpareGPUs
}

func holds(e *rqv1.EnvelopeStatus) int32 { return granted(e) + e.OverdraftGPUs }

// under adds up something over the envelopes under an aggregate cap.
func under(b *rqv1.Budget, c *rqv1.AggregateCap, what func(*rqv1.EnvelopeStatus) int32) int32 {
	sum := int32(0)
	for i := range b.Status.Envelopes {
		if e := &b.Status.Envelopes[i]; slices.Contains(c.Envelopes, e.Name) {
			sum += what(e)
		}
	}
	return sum
}

// caps checks each Budget's limits (I3), and its status against itself (I8).
func (s *sight) caps() {
	fresh := s.untouched()
	for _, b := range s.Budgets {
		about := []Object{object("Budget", b)}
		if b.Status.ObservedGeneration == b.Generation {
			s.within(b, about)
		}
		s.sums(b, about)
		for i := range b.Spec.Envelopes {
			e := &b.Spec.Envelopes[i]
			if paid := fresh[budget.Key{Budget: b.Name, Envelope: e.Name}]; b.Generation <= 1 && paid > int(e.Concurrency) {
				s.find("I3", e.Name, about, "envelope %s of Budget %s allows %d GPUs and was never edited, and GPU leases that "+
					"began since hold %d",
					e.Name, b.Name, e.Concurrency, paid)
			}
		}
	}
}

// untouched counts the GPUs of open Leases by envelope, those apart that may have begun before their Budget was
// created.
func (s *sight) untouched() map[budget.Key]int {
	budgets := map[string]*rqv1.Budget{}
	for _, b := range s.Budgets {
		budgets[b.Name] = b
	}
	out := map[budget.Key]int{}
	for lease, c := range s.charges {
		b := budgets[c.Payer.Budget]
		if b != nil && c.Role != rqv1.RoleBorrowed && lease.Spec.Start.After(b.CreationTimestamp.Add(s.GangDeadline)) {
			out[c.Payer] += c.GPUs
		}
	}
	return out
}

// within finds limits below what the status counts as within them (I3).
func (s *sight) within(b *rqv1.Budget, about []Object) {
	exceeds := func(key, limit string, held int32, most *int32) {
		if most != nil && held > *most {
			s.find("I3", key, about, "%s of Budget %s allows %d GPUs, and %d are counted as within it", limit, b.Name, *most,
				held)
		}
	}
	for i := range b.Status.Envelopes {
		e := &b.Status.Envelopes[i]
		at := slices.IndexFunc(b.Spec.Envelopes, func(spec rqv1.Envelope) bool { return spec.Name == e.Name })
		if at < 0 {
			continue // it was removed, and what it still pays for is overdraft
		}
		exceeds(e.Name, "envelope "+e.Name, granted(e), &b.Spec.Envelopes[at].Concurrency)
		if lending := b.Spec.Envelopes[at].Lending; lending != nil {
			exceeds(e.Name+" lending", "lending of envelope "+e.Name, e.LentGPUs, lending.MaxConcurrency)
		}
	}
	for i := range b.Spec.AggregateCaps {
		c := &b.Spec.AggregateCaps[i]
		exceeds("cap "+c.Name, "aggregate cap "+c.Name, under(b, c, granted), c.MaxConcurrency)
	}
}

// sums checks that the parts of a status add up to its totals (I8): they are written together.
func (s *sight) sums(b *rqv1.Budget, about []Object) {
	used, overdraft := int32(0), int32(0)
	for i := range b.Status.Envelopes {
		used += holds(&b.Status.Envelopes[i])
		overdraft += b.Status.Envelopes[i].OverdraftGPUs
	}
	if b.Status.UsedGPUs != used || b.Status.OverdraftGPUs != overdraft {
		s.find("I8", "", about, "the status of Budget %s says %d GPUs used and %d overdraft, and its envelopes add up "+
			"to %d and %d",
			b.Name, b.Status.UsedGPUs, b.Status.OverdraftGPUs, used, overdraft)
	}
	if b.Status.ObservedGeneration != b.Generation {
		return
	}
	for i := range b.Status.AggregateCaps {
		said := &b.Status.AggregateCaps[i]
		at := slices.IndexFunc(b.Spec.AggregateCaps, func(c rqv1.AggregateCap) bool { return c.Name == said.Name })
		if at < 0 {
			continue
		}
		if sum := under(b, &b.Spec.AggregateCaps[at], holds); sum != said.UsedGPUs {
			s.find("I8", "cap "+said.Name, about,
				"the status of Budget %s counts %d GPUs under aggregate cap %s, and its envelopes %d", b.Name, said.UsedGPUs,
				said.Name, sum)
		}
	}
}
