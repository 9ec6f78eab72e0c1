package story

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// edits change the Budget that pays for 8 of a team's GPUs, in each way that takes the money away. The team has no
// money of its own; it is a sibling of the payer's for family, and a stranger otherwise. Within is what stays within
// the limits, of 8 GPUs.
var edits = map[string]struct {
	family bool
	change func(s *Teller, b *rqv1.Budget)
	cause  string
	within int32
}{
	"cap-lowered": {true, func(_ *Teller, b *rqv1.Budget) { b.Spec.Envelopes[0].Concurrency = 6 },
		"ConcurrencyExceeded", 6},
	"aggregate-cap-set": {true, func(s *Teller, b *rqv1.Budget) {
		b.Spec.AggregateCaps = []rqv1.AggregateCap{{Name: "cap", Flavor: s.site.Flavor, Envelopes: []string{"all"},
			MaxConcurrency: ptr.To[int32](2)}}
	}, "ConcurrencyExceeded", 2},
	"window-closed": {true, func(s *Teller, b *rqv1.Budget) { b.Spec.Envelopes[0].End = s.In(-time.Minute) },
		"WindowClosed", 0},
	"window-closes": {true, func(s *Teller, b *rqv1.Budget) { b.Spec.Envelopes[0].End = s.In(4 * time.Second) },
		"WindowClosed", 0},
	"window-moved": {true, func(s *Teller, b *rqv1.Budget) { b.Spec.Envelopes[0].Start = s.In(time.Hour) },
		"WindowClosed", 0},
	"envelope-removed": {true, func(s *Teller, b *rqv1.Budget) {
		b.Spec.Envelopes[0].Name, b.Spec.Envelopes[0].Flavor = "other", s.site.Flavor+"-other"
	}, "EnvelopeRemoved", 0},
	"sharing-none": {true, func(_ *Teller, b *rqv1.Budget) { b.Spec.Envelopes[0].Sharing = rqv1.SharingNone },
		"SharingWithdrawn", 0},
	"parents-edited": {true, func(s *Teller, b *rqv1.Budget) { b.Spec.Parents = []rqv1.Owner{s.Owner("adopted")} },
		"SharingWithdrawn", 0},
	"owner-edited": {true, func(s *Teller, b *rqv1.Budget) { b.Spec.Owner = s.Owner("adopted") }, "SharingWithdrawn", 0},
	"lending-off": {false, func(_ *Teller, b *rqv1.Budget) { b.Spec.Envelopes[0].Lending.Allow = false },
		"SharingWithdrawn", 0},
	"lending-gone": {false, func(_ *Teller, b *rqv1.Budget) { b.Spec.Envelopes[0].Lending = nil }, "SharingWithdrawn", 0},
	"acl-edited": {false, func(s *Teller, b *rqv1.Budget) {
		b.Spec.Envelopes[0].Lending.To = []rqv1.ACLEntry{rqv1.ACLEntry(s.Owner("elsewhere"))}
	}, "SharingWithdrawn", 0},
	"lending-cap-lowered": {false, func(_ *Teller, b *rqv1.Budget) {
		b.Spec.Envelopes[0].Lending.MaxConcurrency = ptr.To[int32](4)
	}, "ConcurrencyExceeded", 4},
}

// editStories are of Budgets that are edited while they pay.
func editStories() (all []Story) {
	for name, e := range edits {
		all = append(all, Story{Name: "edited-" + name, Play: func(s *Teller) {
			editedWhileItPays(s, e.family, func(b *rqv1.Budget) { e.change(s, b) }, e.cause, e.within)
		}})
	}
	return all
}

// editedWhileItPays takes money away from a Run that runs: nothing of it is touched, the overdraft and its cause are
// visible, nothing new is paid for; and when the edit is undone, all of that is gone.
func editedWhileItPays(s *Teller, family bool, change func(*rqv1.Budget), cause string, within int32) {
	s.Nodes("d0", 2)
	payer, relation := "lender", "sponsor"
	if family {
		payer, relation = "ai:sister", "sibling"
		s.Fund("ai", Envelope("all", 1, func(e *rqv1.Envelope) { e.Sharing = rqv1.SharingNone }))
		s.Fund(payer, Envelope("all", 16))
	} else {
		s.Fund(payer, Envelope("all", 16, s.Lends(0, "ai:team")))
	}
	s.Submit("held", 8, s.By("ai:team"), s.From(payer))
	s.Says("held", rqv1.RunRunning, "bound 8 GPUs")
	s.Funded("held", 0, s.Pay(payer, 8, relation))
	pods, leases := s.Pods("held"), s.World().LeasesOf("held")
	was := s.IsBudget(payer).Spec
	s.EditBudget(payer, change)

	s.Overdrawn(payer, metav1.ConditionTrue, cause)
	s.InOverdraft("held", metav1.ConditionTrue, "BeyondBudget")
	funding := []rqv1.RunSponsor{s.Pay(payer, 8-within, "overdraft")}
	if within > 0 {
		funding = append(funding, s.Pay(payer, within, relation))
	}
	s.Funded("held", 0, funding...)
	s.Submit("new", 8, s.By("ai:team"), s.From(payer))
	refusal := "budget of"
	if !family && within == 0 {
		refusal = "its family or a sponsor that lends to it has an envelope"
	}
	s.Says("new", rqv1.RunPending, refusal)
	s.Sound()

	s.EditBudget(payer, func(b *rqv1.Budget) { b.Spec = *was.DeepCopy() })
	s.Overdrawn(payer, metav1.ConditionFalse, "WithinLimits")
	s.InOverdraft("held", metav1.ConditionFalse, "WithinBudget")
	s.Funded("held", 0, s.Pay(payer, 8, relation))
	s.Says("new", rqv1.RunRunning, "bound 8 GPUs")
	s.Remade("held", pods)
	s.Same("the Leases", leases, s.World().LeasesOf("held"))
}

// Overdrawn waits until the condition of a Budget that is overdrawn has a status and a reason, told by an event too.
func (s *Teller) Overdrawn(path string, status metav1.ConditionStatus, reason string) *metav1.Condition {
	s.T.Helper()
	return s.BudgetSays(path, rqv1.ConditionOverdrawn, status, reason)
}

// InOverdraft waits until a Run's condition of overdraft has a status and a reason, told by an event too.
func (s *Teller) InOverdraft(run string, status metav1.ConditionStatus, reason string) {
	s.T.Helper()
	s.Until("Run "+run+" is to say that it is in overdraft: "+string(status), func() error {
		return told(s.Run(run).Status.Conditions, rqv1.ConditionOverdraft, status, reason)
	})
	s.Told("Run", run, reason, "")
}

func told(conditions []metav1.Condition, kind string, status metav1.ConditionStatus, reason string) error {
	if c := meta.FindStatusCondition(conditions, kind); c == nil || c.Status != status || c.Reason != reason {
		return fmt.Errorf("its condition is %+v", c)
	}
	return nil
}
