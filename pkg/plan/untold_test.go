package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
)

// TestWhatASponsorHasIsNotTold has Runs name an owner that does not lend to theirs: they are told of it in the same
// words whatever Budgets it has, and of nothing in them.
func TestWhatASponsorHasIsNotTold(t *testing.T) {
	d := Demand{Owner: "org:a", Flavor: "H100", GPUsPerPod: 8, Groups: 1, PodsPerGroup: 2}
	opens := metav1.NewTime(noon.Add(time.Hour))
	hidden := func(edit func(*rqv1.Envelope)) *rqv1.Budget {
		e := rqv1.Envelope{Name: "merger", Flavor: "H100", Concurrency: 64}
		edit(&e)
		return &rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: "acquisition"},
			Spec: rqv1.BudgetSpec{Owner: "other", Envelopes: []rqv1.Envelope{e}}}
	}
	own := &rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: rqv1.BudgetSpec{Owner: "org:a",
		Envelopes: []rqv1.Envelope{{Name: "e", Flavor: "H100", Concurrency: 8}}}}
	silent := rqv1.RefusalPayer{Step: 2, Relation: rqv1.RelationSponsor, Owner: "other",
		Stops: "it does not lend to org:a"}
	paying := rqv1.RefusalPayer{Step: 1, Relation: rqv1.RelationOwn, Owner: "org:a", Budget: "b", Envelope: "e", GPUs: 8,
		Limit: &rqv1.RefusalLimit{Kind: "concurrency", Max: 8, Left: 8}, Stops: "concurrency: 8 of 8 GPUs left"}
	const short = "budget of org:a is short by 8 of 16 GPUs (b/e: 0 of 8 GPUs in use; sponsor other: it does not lend " +
		"to org:a)"
	const nobody = "no Budget of owner org:a, its family or a sponsor that lends to it has an envelope for GPUs of " +
		"type H100"
	for name, budgets := range map[string][]*rqv1.Budget{
		"no Budget":    nil,
		"no lending":   {hidden(func(*rqv1.Envelope) {})},
		"switched off": {hidden(func(e *rqv1.Envelope) { e.Lending = &rqv1.Lending{To: []rqv1.ACLEntry{"*"}} })},
		"to another": {hidden(func(e *rqv1.Envelope) {
			e.Lending = &rqv1.Lending{Allow: true, To: []rqv1.ACLEntry{"org:b"}}
		})},
		"a window to come": {hidden(func(e *rqv1.Envelope) { e.Start = &opens })},
		"a closed window":  {hidden(func(e *rqv1.Envelope) { e.End = ptr(metav1.NewTime(noon)) })},
	} {
		for _, c := range []struct {
			budgets []*rqv1.Budget
			message string
			want    rqv1.RunRefusal
		}{
			{append(budgets, own), short, rqv1.RunRefusal{Reason: "InsufficientBudget", Owner: "org:a", WantedGPUs: 16,
				ShortGPUs: 8, Envelope: "b/e", Limit: paying.Limit, Payers: []rqv1.RefusalPayer{paying, silent},
				Changes: []rqv1.RefusalChange{{What: "raise envelopes[e].concurrency of Budget b from 8 to 16", GPUs: 16}}}},
			{budgets, nobody, rqv1.RunRefusal{Reason: "NoBudget", Owner: "org:a", WantedGPUs: 16, ShortGPUs: 16,
				Payers: []rqv1.RefusalPayer{silent}, Changes: []rqv1.RefusalChange{{GPUs: 16,
					What: "ask an administrator for a Budget of org:a with an envelope of flavor H100 and concurrency 16"}}}},
		} {
			a := budget.NewAccounts(budget.Rates{})
			for _, b := range c.budgets {
				a.SetBudget(b)
			}
			claim := Claim{Funding: &rqv1.RunFunding{AllowBorrow: true, Sponsors: []rqv1.Owner{"other"}}}
			attempt := Prepare(a, d, claim, all(d), nil, noon)
			r := attempt.Unpaid(fleet())
			r.Advice = Advise(a, d, claim, false, r, noon)
			if diff := cmp.Diff(&c.want, r.Published()); diff != "" {
				t.Errorf("%s: published (-want +got):\n%s", name, diff)
			}
			if !strings.HasPrefix(r.Message, c.message) {
				t.Errorf("%s: it says %q, want %q", name, r.Message, c.message)
			}
			for _, w := range attempt.Windows() {
				if !w.Opens.IsZero() {
					t.Errorf("%s: a date is worked out from a window that opens at %s", name, w.Opens)
				}
			}
			if woken := strings.Contains(strings.Join(r.Payers, " "), "acquisition"); woken != (len(budgets) > 0) {
				t.Errorf("%s: an edit of the sponsor's Budget wakes the Run: %v", name, woken)
			}
		}
	}
}
