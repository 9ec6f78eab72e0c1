package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// edits change the Budget that pays for 8 of a team's GPUs, in each way that takes the money away. The team has no
// money of its own; it is a sibling of the payer's for family, and a stranger otherwise.
var edits = map[string]struct {
	family bool
	change func(s *site, b *rqv1.Budget)
	cause  string
	// within is what stays within the limits, of 8 GPUs.
	within int32
}{
	"cap lowered": {true, func(_ *site, b *rqv1.Budget) { b.Spec.Envelopes[0].Concurrency = 6 }, "ConcurrencyExceeded", 6},
	"aggregate cap set": {true, func(s *site, b *rqv1.Budget) {
		b.Spec.AggregateCaps = []rqv1.AggregateCap{{Name: "cap", Flavor: s.flavor, Envelopes: []string{"all"},
			MaxConcurrency: ptr.To[int32](2)}}
	}, "ConcurrencyExceeded", 2},
	"window closed": {true, func(_ *site, b *rqv1.Budget) { b.Spec.Envelopes[0].End = fromNow(-time.Minute) },
		"WindowClosed", 0},
	"window closes": {true, func(_ *site, b *rqv1.Budget) { b.Spec.Envelopes[0].End = fromNow(4 * time.Second) },
		"WindowClosed", 0},
	"window moved": {true, func(_ *site, b *rqv1.Budget) { b.Spec.Envelopes[0].Start = fromNow(time.Hour) },
		"WindowClosed", 0},
	"envelope removed": {true, func(s *site, b *rqv1.Budget) {
		b.Spec.Envelopes[0].Name, b.Spec.Envelopes[0].Flavor = "other", s.flavor+"-other"
	}, "EnvelopeRemoved", 0},
	"sharing none": {true, func(_ *site, b *rqv1.Budget) { b.Spec.Envelopes[0].Sharing = rqv1.SharingNone },
		"SharingWithdrawn", 0},
	"parents edited": {true, func(s *site, b *rqv1.Budget) { b.Spec.Parents = []rqv1.Owner{s.of("adopted")} },
		"SharingWithdrawn", 0},
	"owner edited": {true, func(s *site, b *rqv1.Budget) { b.Spec.Owner = s.of("adopted") }, "SharingWithdrawn", 0},
	"lending off": {false, func(_ *site, b *rqv1.Budget) { b.Spec.Envelopes[0].Lending.Allow = false },
		"SharingWithdrawn", 0},
	"lending gone": {false, func(_ *site, b *rqv1.Budget) { b.Spec.Envelopes[0].Lending = nil }, "SharingWithdrawn", 0},
	"ACL edited": {false, func(s *site, b *rqv1.Budget) {
		b.Spec.Envelopes[0].Lending.To = []rqv1.ACLEntry{rqv1.ACLEntry(s.of("elsewhere"))}
	}, "SharingWithdrawn", 0},
	"lending cap lowered": {false, func(_ *site, b *rqv1.Budget) {
		b.Spec.Envelopes[0].Lending.MaxConcurrency = ptr.To[int32](4)
	}, "ConcurrencyExceeded", 4},
}

// TestBudgetEditedWhileItPays takes money away from a Run that runs: nothing of it is touched, the overdraft and its
// cause are visible, nothing new is paid for; and when the edit is undone, all of that is gone.
func TestBudgetEditedWhileItPays(t *testing.T) {
	t.Parallel()
	for name, c := range edits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, liveCluster(t), 1, 2, 0)
			payer, relation := s.prepare(c.family)
			team := s.by("ai:team")
			s.submit("held", 8, team, s.from(0, payer))
			s.await("held", rqv1.RunRunning, "bound 8 GPUs")
			s.awaitFunding("held", 0, s.sponsor(payer, 8, relation))
			before, budget := s.versions("held"), s.budgetFor(payer)
			specs := s.specs("held")
			var was rqv1.BudgetSpec
			edit(s, budget, func(b *rqv1.Budget) { was = *b.Spec.DeepCopy(); c.change(s, b) })

			s.awaitBudgetCondition(payer, rqv1.ConditionOverdrawn, metav1.ConditionTrue, c.cause)
			s.awaitOverdraft("held", metav1.ConditionTrue)
			funding := []rqv1.RunSponsor{s.sponsor(payer, 8-c.within, "overdraft")}
			if c.within > 0 {
				funding = append(funding, s.sponsor(payer, c.within, relation))
			}
			s.awaitFunding("held", 0, funding...)
			s.submit("new", 8, team, s.from(0, payer))
			refusal := "budget of"
			if !c.family && c.within == 0 {
				refusal = "its family or a sponsor that lends to it has an envelope"
			}
			s.await("new", rqv1.RunPending, refusal)
			s.settled()

			edit(s, budget, func(b *rqv1.Budget) { b.Spec = was })
			s.awaitBudgetCondition(payer, rqv1.ConditionOverdrawn, metav1.ConditionFalse, "WithinLimits")
			s.awaitOverdraft("held", metav1.ConditionFalse)
			s.awaitFunding("held", 0, s.sponsor(payer, 8, relation))
			s.await("new", rqv1.RunRunning, "bound 8 GPUs")
			if diff := cmp.Diff(before, s.versions("held")); diff != "" {
				t.Errorf("pods and Leases were touched: %s", diff)
			}
			if diff := cmp.Diff(specs, s.specs("held")); diff != "" {
				t.Errorf("Leases were re-priced: %s", diff)
			}
			s.settled()
		})
	}
}

// prepare makes a Budget for 16 GPUs that may pay for ai:team, as a sibling or as a sponsor, and returns whose it is.
func (s *site) prepare(family bool) (payer, relation string) {
	s.t.Helper()
	if !family {
		s.fund("lender", s.envelope("all", 16, s.lends(0, "ai:team")))
		return "lender", "sponsor"
	}
	s.fund("ai", s.envelope("all", 1, func(e *rqv1.Envelope) { e.Sharing = rqv1.SharingNone }))
	s.fund("ai:sister", s.envelope("all", 16))
	return "ai:sister", "sibling"
}

// specs are the specs of a Run's Leases, by name.
func (s *site) specs(run string) map[string]rqv1.LeaseSpec {
	s.t.Helper()
	out := map[string]rqv1.LeaseSpec{}
	for _, lease := range s.leasesOf(run) {
		out[lease.Name] = lease.Spec
	}
	return out
}

// TestBudgetLostAndFound deletes a Budget by accident while it pays and has paid: the Run goes on, and once the Budget
// is back, so are its usage and every GPU-second.
func TestBudgetLostAndFound(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 2, 0)
	s.fund("team", s.envelope("all", 16))
	s.submit("past", 8, s.by("team"), annotated("pod-complete.stage.kwok.x-k8s.io/delay", "2s"))
	s.await("past", rqv1.RunCompleted, "completed")
	s.submit("held", 8, s.by("team"))
	s.await("held", rqv1.RunRunning, "bound 8 GPUs")
	s.awaitEnvelopes("team", rqv1.EnvelopeStatus{Name: "all", OwnedGPUs: 8})
	before := s.versions("held")

	s.delete(s.budgetFor("team"))
	s.awaitOverdraft("held", metav1.ConditionTrue)
	s.awaitFunding("held", 0, s.sponsor("team", 8, "overdraft"))
	s.submit("new", 8, s.by("team"))
	s.awaitRefusal("new", "NoBudget", "no Budget of owner")

	s.fund("team", s.envelope("all", 16))
	s.awaitOverdraft("held", metav1.ConditionFalse)
	s.awaitFunding("held", 8)
	s.await("new", rqv1.RunRunning, "bound 8 GPUs")
	if diff := cmp.Diff(before, s.versions("held")); diff != "" {
		t.Errorf("pods and Leases were touched: %s", diff)
	}
	s.settled()
	s.removeRun("held")
	s.removeRun("new")
	s.awaitGone("held", "new")
	s.awaitSpent("team")
}

// awaitSpent waits until nothing is charged to an owner's Budget any more, and its GPU-hours are what all Leases that
// the site ever had add up to, whether they are still there or not (I8, R9).
func (s *site) awaitSpent(path string) {
	s.t.Helper()
	eventually(s.t, "the GPU-hours of "+path, func() error {
		status, err := s.statusOf(path)
		if err != nil {
			return err
		}
		for i := range status.Envelopes {
			e := &status.Envelopes[i]
			spent, err := s.everSpent(s.budgetFor(path).Name, e.Name)
			if err != nil {
				return err
			}
			if got := e.GPUHours.Spent; got != spent.String() {
				return fmt.Errorf("envelope %s has spent %s by its status and %s by its Leases", e.Name, got, spent)
			}
		}
		return nil
	})
}
