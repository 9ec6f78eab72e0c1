package story

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
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

// Borrows bounds the GPUs for which a Run may borrow, unless 0.
func Borrows(most int32) RunChange {
	return func(r *rqv1.Run) {
		if most > 0 {
			r.Spec.Funding.MaxBorrowGPUs = &most
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

// BudgetSays waits until a condition of a Budget has a status and a reason, told by an event too, and returns it.
func (s *Teller) BudgetSays(path, condition string, status metav1.ConditionStatus, reason string) *metav1.Condition {
	s.T.Helper()
	var found *metav1.Condition
	name := s.short(s.BudgetName(path))
	s.Until(fmt.Sprintf("%s of Budget %s is to be %s by %s", condition, name, status, reason), func() error {
		conditions := s.IsBudget(path).Status.Conditions
		found = meta.FindStatusCondition(conditions, condition)
		return told(conditions, condition, status, reason)
	})
	s.Told("Budget", name, reason, "")
	return found
}

// Uses waits until the envelopes of a Budget hold so much, GPU-hours and headroom apart.
func (s *Teller) Uses(path string, want ...rqv1.EnvelopeStatus) {
	s.T.Helper()
	s.Until("the usage of "+path, func() error {
		got := slices.Clone(s.IsBudget(path).Status.Envelopes)
		for i := range got {
			got[i].GPUHours, got[i].HeadroomGPUs, got[i].LendableGPUs = nil, 0, 0
		}
		return differs(want, got)
	})
}

// Spent waits until the envelopes of a Budget have spent what all Leases that they paid for add up to, which have
// closed.
func (s *Teller) Spent(path string) {
	s.T.Helper()
	s.Until("the GPU-hours of "+path, func() error {
		for _, e := range s.IsBudget(path).Status.Envelopes {
			spent, err := SpentOn(s.World().Leases, s.BudgetName(path), e.Name)
			if err != nil {
				return err
			}
			if e.GPUHours == nil || e.GPUHours.Spent != spent.String() {
				return fmt.Errorf("envelope %s says %+v, and its Leases %s", e.Name, e.GPUHours, spent)
			}
		}
		return nil
	})
}

// SpentOn adds up what Leases spent of an envelope of a Budget; it is an error while one of them is open.
func SpentOn(leases []*rqv1.Lease, of, envelope string) (sum budget.Spend, err error) {
	for _, l := range leases {
		if l.Spec.Payer.Budget != of || l.Spec.PaidByEnvelope != envelope {
			continue
		}
		if !l.Status.Closed {
			return 0, fmt.Errorf("Lease %s is open", l.Name)
		}
		rate, err := budget.ParseRate(l.Spec.Payer.Rate)
		if err != nil {
			return 0, err
		}
		seconds := l.Status.Ended.Unix() - l.Spec.Start.Unix()
		sum += budget.Spend(int64(l.GPUs()) * int64(rate) * seconds)
	}
	return sum, nil
}

// Traces are the pods and Leases of Runs: they are as they were unless somebody has touched one.
func (s *Teller) Traces(runs ...string) map[string]string {
	out, w := map[string]string{}, s.World()
	for _, run := range runs {
		for name, pod := range w.PodsOf(run) {
			out["pod "+name] = fmt.Sprintf("%s on %s, told to go by %v", pod.UID, pod.Spec.NodeName, pod.DeletionTimestamp)
		}
		for _, l := range w.LeasesOf(run) {
			out["Lease "+l.Name] = s.line(l) + " " + l.ResourceVersion
		}
	}
	return out
}
