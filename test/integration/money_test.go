package integration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// of is an owner below the site's own.
func (s *site) of(path string) rqv1.Owner { return s.owner + ":" + rqv1.Owner(path) }

// by has a Run spend as an owner below the site's own.
func (s *site) by(path string) func(*rqv1.Run) {
	return func(r *rqv1.Run) { r.Spec.Owner = s.of(path) }
}

// from has a Run borrow from sponsors below the site's own owner, at most so many GPUs unless 0.
func (s *site) from(most int32, sponsors ...string) func(*rqv1.Run) {
	return func(r *rqv1.Run) {
		r.Spec.Funding = &rqv1.RunFunding{AllowBorrow: true}
		if most > 0 {
			r.Spec.Funding.MaxBorrowGPUs = &most
		}
		for _, path := range sponsors {
			r.Spec.Funding.Sponsors = append(r.Spec.Funding.Sponsors, s.of(path))
		}
	}
}

// lasting gives a Run a maxDuration.
func lasting(d time.Duration) func(*rqv1.Run) {
	return func(r *rqv1.Run) { r.Spec.Runtime = &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: d}} }
}

// envelope is an envelope of the site's flavor.
func (s *site) envelope(name string, concurrency int32, changes ...func(*rqv1.Envelope)) rqv1.Envelope {
	e := rqv1.Envelope{Name: name, Flavor: s.flavor, Concurrency: concurrency}
	for _, change := range changes {
		change(&e)
	}
	return e
}

// hours bounds an envelope's GPU-hours.
func hours(most int64) func(*rqv1.Envelope) {
	return func(e *rqv1.Envelope) { e.MaxGPUHours = &most }
}

// lends has an envelope lend to owners below the site's own; at most so many GPUs unless 0.
func (s *site) lends(most int32, to ...string) func(*rqv1.Envelope) {
	return func(e *rqv1.Envelope) {
		e.Lending = &rqv1.Lending{Allow: true}
		for _, path := range to {
			e.Lending.To = append(e.Lending.To, rqv1.ACLEntry(s.of(path)))
		}
		if most > 0 {
			e.Lending.MaxConcurrency = &most
		}
	}
}

// budgetFor is the Budget of an owner below the site's own, with changes.
func (s *site) budgetFor(path string, changes ...func(*rqv1.Budget)) *rqv1.Budget {
	b := &rqv1.Budget{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-" + strings.ReplaceAll(path, ":", "-")},
		Spec:       rqv1.BudgetSpec{Owner: s.of(path)},
	}
	for _, change := range changes {
		change(b)
	}
	return b
}

// fund creates the Budget of an owner below the site's own.
func (s *site) fund(path string, envelopes ...rqv1.Envelope) {
	s.t.Helper()
	s.create(s.budgetFor(path, func(b *rqv1.Budget) { b.Spec.Envelopes = envelopes }))
}

// amend edits the first envelope of the Budget of an owner below the site's own.
func (s *site) amend(path string, change func(*rqv1.Envelope)) {
	s.t.Helper()
	edit(s, s.budgetFor(path), func(b *rqv1.Budget) { change(&b.Spec.Envelopes[0]) })
}

// statusOf is the status of the Budget of an owner below the site's own.
func (s *site) statusOf(path string) (*rqv1.BudgetStatus, error) {
	b := s.budgetFor(path)
	err := s.api.Get(s.t.Context(), client.ObjectKeyFromObject(b), b)
	if err == nil && b.Status.ObservedGeneration != b.Generation {
		err = fmt.Errorf("the status of Budget %s is older than its spec", b.Name)
	}
	return &b.Status, err
}

// awaitEnvelopes waits until the envelopes of a Budget hold so much, GPU-hours and headroom apart.
func (s *site) awaitEnvelopes(path string, want ...rqv1.EnvelopeStatus) {
	s.t.Helper()
	eventually(s.t, "the usage of "+path, func() error {
		status, err := s.statusOf(path)
		if err != nil {
			return err
		}
		got := slices.Clone(status.Envelopes)
		for i := range got {
			got[i].GPUHours, got[i].HeadroomGPUs, got[i].LendableGPUs = nil, 0, 0
		}
		return differs(want, got)
	})
}

// awaitFunding waits until a Run's status tells who pays for it.
func (s *site) awaitFunding(run string, owned int32, others ...rqv1.RunSponsor) *rqv1.Run {
	s.t.Helper()
	want := rqv1.RunFundingStatus{OwnedGPUs: owned, Sponsors: others}
	for _, other := range others {
		want.BorrowedGPUs += other.GPUs
	}
	var is *rqv1.Run
	eventually(s.t, "the funding of "+run, func() (err error) {
		if is, err = s.get(run); err != nil {
			return err
		}
		if is.Status.Funding == nil {
			return fmt.Errorf("Run %s is %s: %s", run, is.Status.Phase, is.Status.Message)
		}
		return differs(want, *is.Status.Funding)
	})
	return is
}

// sponsor is a line of a Run's funding.
func (s *site) sponsor(path string, gpus int32, relation string) rqv1.RunSponsor {
	return rqv1.RunSponsor{Owner: s.of(path), GPUs: gpus, Relation: relation}
}

// payers adds up a Run's open Leases: GPUs by payer, envelope, relation and role, such as `mm/all sponsor Active`.
func (s *site) payers(run string) map[string]int32 {
	s.t.Helper()
	out := map[string]int32{}
	for _, lease := range s.leasesOf(run) {
		if !lease.Status.Closed {
			path := strings.TrimPrefix(string(lease.Spec.Payer.Owner), string(s.owner)+":")
			out[fmt.Sprintf("%s/%s %s %s", path, lease.Spec.PaidByEnvelope, lease.Spec.Payer.Relation,
				lease.Spec.Slice.Role)] += lease.Spec.Slice.Nodes[0].GPUs
		}
	}
	return out
}

// paidBy fails the test unless a Run's open Leases add up to this, as payers tells them.
func (s *site) paidBy(run string, want map[string]int32) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.payers(run)); diff != "" {
		s.t.Errorf("payers of %s (-want +got):\n%s", run, diff)
	}
}

// awaitBudgetCondition waits until a condition of a Budget has a status and a reason, and an event has told so.
func (s *site) awaitBudgetCondition(path, condition string, status metav1.ConditionStatus,
	reason string) metav1.Condition {
	s.t.Helper()
	var found *metav1.Condition
	eventually(s.t, fmt.Sprintf("%s of Budget %s is to be %s by %s", condition, path, status, reason), func() error {
		is, err := s.statusOf(path)
		if err != nil {
			return err
		}
		if found = meta.FindStatusCondition(is.Conditions, condition); found == nil || found.Status != status ||
			found.Reason != reason {
			return fmt.Errorf("conditions %+v", is.Conditions)
		}
		return nil
	})
	s.awaitEvent("Budget", s.budgetFor(path).Name, reason)
	return *found
}

// awaitOverdraft waits until a Run's overdraft condition has a status, and an event has told so.
func (s *site) awaitOverdraft(run string, status metav1.ConditionStatus) {
	s.t.Helper()
	reason := map[metav1.ConditionStatus]string{metav1.ConditionTrue: "BeyondBudget",
		metav1.ConditionFalse: "WithinBudget"}[status]
	eventually(s.t, fmt.Sprintf("overdraft of Run %s is to be %s", run, status), func() error {
		is, err := s.get(run)
		if err != nil {
			return err
		}
		found := meta.FindStatusCondition(is.Status.Conditions, rqv1.ConditionOverdraft)
		if found == nil || found.Status != status || found.Reason != reason {
			return fmt.Errorf("conditions %+v", is.Status.Conditions)
		}
		return nil
	})
	s.awaitEvent("Run", run, reason)
}

// awaitEvent waits for an event of a reason on an object.
func (s *site) awaitEvent(kind, name, reason string) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("event %s of %s %s", reason, kind, name), func() error {
		var events eventsv1.EventList
		in := ofNodes
		if kind == "Run" {
			in = client.InNamespace(s.namespace)
		}
		err := s.api.List(s.t.Context(), &events, in, client.MatchingFields{"regarding.kind": kind, "regarding.name": name,
			"reason": reason})
		if err == nil && len(events.Items) == 0 {
			err = errors.New("there is none")
		}
		return err
	})
}

// awaitRefusal waits until a Run waits for a reason, in a message that holds some texts.
func (s *site) awaitRefusal(run, reason string, texts ...string) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("Run %s is to be refused by %s", run, reason), func() error {
		is, err := s.get(run)
		if err != nil {
			return err
		}
		started := meta.FindStatusCondition(is.Status.Conditions, rqv1.ConditionStarted)
		if is.Status.Phase != rqv1.RunPending || started == nil || started.Reason != reason {
			return fmt.Errorf("it is %s: %+v", is.Status.Phase, started)
		}
		for _, text := range texts {
			if !strings.Contains(is.Status.Message, text) {
				return fmt.Errorf("its message is %q and lacks %q", is.Status.Message, text)
			}
		}
		return nil
	})
	if err := s.holdsNothing(run); err != nil {
		s.t.Error(err)
	}
}

// versions are the resource versions of a Run's Leases and the UIDs of its pods: what changes when anything is touched.
func (s *site) versions(run string) map[string]string {
	s.t.Helper()
	out := s.uids(run)
	for _, lease := range s.leasesOf(run) {
		out["lease "+lease.Name] = lease.ResourceVersion
	}
	return out
}

// differs is an error that shows how two values differ.
func differs(want, got any) error {
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("-want +got:\n%s", diff)
	}
	return nil
}
