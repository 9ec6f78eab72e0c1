package story

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Envelope is money for so many GPUs at a time.
func Envelope(name string, gpus int32, changes ...func(*rqv1.Envelope)) rqv1.Envelope {
	e := rqv1.Envelope{Name: name, Concurrency: gpus}
	for _, change := range changes {
		change(&e)
	}
	return e
}

// Lends has an envelope lend to owners below the site's own; at most so many GPUs unless 0.
func (s *Teller) Lends(most int32, to ...string) func(*rqv1.Envelope) {
	return func(e *rqv1.Envelope) {
		e.Lending = &rqv1.Lending{Allow: true}
		for _, path := range to {
			e.Lending.To = append(e.Lending.To, rqv1.ACLEntry(s.Owner(path)))
		}
		if most > 0 {
			e.Lending.MaxConcurrency = &most
		}
	}
}

// From has a Run borrow from sponsors.
func (s *Teller) From(sponsors ...string) RunChange {
	return func(r *rqv1.Run) {
		r.Spec.Funding = &rqv1.RunFunding{AllowBorrow: true}
		for _, path := range sponsors {
			r.Spec.Funding.Sponsors = append(r.Spec.Funding.Sponsors, s.Owner(path))
		}
	}
}

// IsBudget returns an owner's Budget as it is.
func (s *Teller) IsBudget(path string) *rqv1.Budget {
	s.T.Helper()
	for _, b := range s.World().Budgets {
		if b.Name == s.BudgetName(path) {
			return b.DeepCopy()
		}
	}
	s.Fatalf("there is no Budget of %q", path)
	return nil
}

// EditBudget changes an owner's Budget.
func (s *Teller) EditBudget(path string, change func(*rqv1.Budget)) {
	s.T.Helper()
	b := &rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: s.BudgetName(path)}}
	s.must(s.Change(b, func() { change(b) }))
}

// Pay is a line of a Run's funding: who pays for how much, and as what.
func (s *Teller) Pay(path string, gpus int32, relation string) rqv1.RunSponsor {
	return rqv1.RunSponsor{Owner: s.Owner(path), GPUs: gpus, Relation: relation}
}

// Funded waits until a Run's status tells who pays for it: its owner, and others.
func (s *Teller) Funded(run string, owned int32, others ...rqv1.RunSponsor) {
	s.T.Helper()
	want := &rqv1.RunFundingStatus{OwnedGPUs: owned, Sponsors: others}
	for _, other := range others {
		want.BorrowedGPUs += other.GPUs
	}
	s.Until("the funding of "+run, func() error { return differs(want, s.Run(run).Status.Funding) })
}
