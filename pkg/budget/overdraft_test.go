package budget

import (
	"fmt"
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// payer is a Budget with everybody who may hold of it: its owner, a sibling, a child and a borrower.
func payer(edit func(*rqv1.Budget)) []*rqv1.Budget {
	b := of("b", "p:own", rqv1.Envelope{Name: "e", Concurrency: 100, MaxGPUHours: ptr(int64(1000)),
		Lending: &rqv1.Lending{Allow: true, To: []rqv1.ACLEntry{"x:*"}, MaxConcurrency: ptr(int32(20)),
			MaxGPUHours: ptr(int64(200))}},
		rqv1.Envelope{Name: "f", Concurrency: 100})
	capped(b, rqv1.AggregateCap{Name: "both", Envelopes: []string{"e", "f"}, MaxConcurrency: ptr(int32(60)),
		MaxGPUHours: ptr(int64(5000))})
	edit(b)
	return []*rqv1.Budget{b, flat("parent", "p", 1), flat("sibling", "p:sib", 1), flat("child", "p:own:child", 1),
		flat("borrower", "x:y", 1)}
}

// TestCausesOfOverdraft changes the payer of 10 GPUs of its owner, then of a sibling, a child and a borrower, and of 10
// more of its owner by the other envelope.
func TestCausesOfOverdraft(t *testing.T) {
	hour := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Hour) }
	e := func(change func(*rqv1.Envelope)) func(*rqv1.Budget) {
		return func(b *rqv1.Budget) { change(&b.Spec.Envelopes[0]) }
	}
	for _, tc := range []struct {
		name string
		edit func(*rqv1.Budget)
		now  time.Time
		want []int // of the five
		why  []Overdraft
	}{
		{"nothing", func(*rqv1.Budget) {}, hour(6), []int{0, 0, 0, 0, 0}, nil},
		{"concurrency, the youngest first", e(func(e *rqv1.Envelope) { e.Concurrency = 25 }), hour(6), []int{0, 0, 5, 10, 0},
			[]Overdraft{{Key{"b", "e"}, 15, CauseConcurrency}}},
		{"lending cap alone", e(func(e *rqv1.Envelope) { e.Lending.MaxConcurrency = ptr(int32(4)) }), hour(6),
			[]int{0, 0, 0, 6, 0},
			[]Overdraft{{Key{"b", "e"}, 6, CauseConcurrency}}},
		{"lending hours", e(func(e *rqv1.Envelope) { e.Lending.MaxGPUHours = ptr(int64(30)) }), hour(6),
			[]int{0, 0, 0, 10, 0},
			[]Overdraft{{Key{"b", "e"}, 10, CauseHours}}},
		{"lending hours, a second before", e(func(e *rqv1.Envelope) { e.Lending.MaxGPUHours = ptr(int64(30)) }),
			hour(6).Add(-time.Second),
			[]int{0, 0, 0, 0, 0}, nil},
		{"lending off", e(func(e *rqv1.Envelope) { e.Lending.Allow = false }), hour(6), []int{0, 0, 0, 10, 0},
			[]Overdraft{{Key{"b", "e"}, 10, CauseWithdrawn}}},
		{"lending gone", e(func(e *rqv1.Envelope) { e.Lending = nil }), hour(6), []int{0, 0, 0, 10, 0},
			[]Overdraft{{Key{"b", "e"}, 10, CauseWithdrawn}}},
		{"lending to others", e(func(e *rqv1.Envelope) { e.Lending.To = []rqv1.ACLEntry{"x", "p:*"} }), hour(6),
			[]int{0, 0, 0, 10, 0},
			[]Overdraft{{Key{"b", "e"}, 10, CauseWithdrawn}}},
		{"sharing off", e(func(e *rqv1.Envelope) { e.Sharing = rqv1.SharingNone }), hour(6), []int{0, 10, 10, 0, 0},
			[]Overdraft{{Key{"b", "e"}, 20, CauseWithdrawn}}},
		{"other parents", func(b *rqv1.Budget) { under(b, "q") }, hour(6), []int{0, 10, 0, 0, 0},
			[]Overdraft{{Key{"b", "e"}, 10, CauseWithdrawn}}},
		{"another owner", func(b *rqv1.Budget) { b.Spec.Owner = "x:z" }, hour(6), []int{10, 10, 10, 0, 10},
			[]Overdraft{{Key{"b", "e"}, 30, CauseWithdrawn}, {Key{"b", "f"}, 10, CauseWithdrawn}}},
		{"window over", e(func(e *rqv1.Envelope) { e.End = after(5 * time.Hour) }), hour(6), []int{10, 10, 10, 10, 0},
			[]Overdraft{{Key{"b", "e"}, 40, CauseWindow}}},
		{"window not open", e(func(e *rqv1.Envelope) { e.Start = after(7 * time.Hour) }), hour(6), []int{10, 10, 10, 10, 0},
			[]Overdraft{{Key{"b", "e"}, 40, CauseWindow}}},
		{"hours, 60 + 50 + 40 + 30 spent", e(func(e *rqv1.Envelope) { e.MaxGPUHours = ptr(int64(180)) }), hour(6),
			[]int{10, 10, 10, 10, 0},
			[]Overdraft{{Key{"b", "e"}, 40, CauseHours}}},
		{"hours, one to go", e(func(e *rqv1.Envelope) { e.MaxGPUHours = ptr(int64(181)) }), hour(6), []int{0, 0, 0, 0, 0},
			nil},
		{"cap", func(b *rqv1.Budget) { b.Spec.AggregateCaps[0].MaxConcurrency = ptr(int32(32)) }, hour(6),
			[]int{0, 0, 0, 8, 10},
			[]Overdraft{{Key{"b", "e"}, 8, CauseConcurrency}, {Key{"b", "f"}, 10, CauseConcurrency}}},
		{"hours of a cap", func(b *rqv1.Budget) { b.Spec.AggregateCaps[0].MaxGPUHours = ptr(int64(200)) }, hour(6),
			[]int{10, 10, 10, 10, 10},
			[]Overdraft{{Key{"b", "e"}, 40, CauseHours}, {Key{"b", "f"}, 10, CauseHours}}},
		{"envelope gone", func(b *rqv1.Budget) { b.Spec.Envelopes = b.Spec.Envelopes[1:] }, hour(6), []int{10, 10, 10, 10, 0},
			[]Overdraft{{Key{"b", "e"}, 40, CauseRemoved}}},
		{"what is overdraft leaves room for the younger", func(b *rqv1.Budget) {
			b.Spec.Envelopes[0].Sharing, b.Spec.Envelopes[0].Concurrency = rqv1.SharingNone, 15
		}, hour(6), []int{0, 10, 10, 5, 0}, []Overdraft{{Key{"b", "e"}, 25, CauseWithdrawn}}},
		{"the strongest cause", func(b *rqv1.Budget) {
			b.Spec.Envelopes[0].Sharing, b.Spec.Envelopes[0].MaxGPUHours = rqv1.SharingNone, ptr(int64(1))
		}, hour(6), []int{10, 10, 10, 10, 0}, []Overdraft{{Key{"b", "e"}, 40, CauseHours}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := accountsOf(payer(func(*rqv1.Budget) {})...)
			for i, c := range []Charge{
				{Owner: "p:own", Relation: rqv1.RelationOwn}, {Owner: "p:sib", Relation: rqv1.RelationSibling},
				{Owner: "p:own:child", Relation: rqv1.RelationAncestor}, {Owner: "x:y", Relation: rqv1.RelationSponsor},
				{Owner: "p:own", Relation: rqv1.RelationOwn},
			} {
				c.Payer, c.Role, c.GPUs, c.Rate, c.Start = Key{"b", "e"}, rqv1.RoleActive, 10, FullRate, hour(i)
				if i == 4 {
					c.Payer.Envelope = "f"
				}
				a.Open(fmt.Sprintf("ns/%d", i), c)
			}
			same(t, "changed at first", []string(nil), a.Refresh(hour(5)))
			for _, b := range payer(tc.edit) {
				a.SetBudget(b)
			}
			var changed []string
			for i, gpus := range tc.want {
				if gpus > 0 {
					changed = append(changed, fmt.Sprintf("ns/%d", i))
				}
			}
			same(t, "changed", changed, a.Refresh(tc.now))
			got := make([]int, len(tc.want))
			for i := range got {
				got[i] = a.OverdraftOf(fmt.Sprintf("ns/%d", i))
			}
			same(t, "overdraft", tc.want, got)
			same(t, "overdraft by envelope", tc.why, a.Overdrafts("b"))
			same(t, "changed when nothing did", []string(nil), a.Refresh(tc.now))
		})
	}
}

func TestRemovedBudgetLosesNothing(t *testing.T) {
	b := flat("b", "o", 8)
	a := accountsOf(b)
	a.Open("ns/x", held(Key{"b", "e"}, "o", rqv1.RelationOwn, rqv1.RoleSpare, 6))
	a.DeleteBudget("b")
	same(t, "changed by removal", []string{"ns/x"}, a.Refresh(noon))
	same(t, "overdraft", []Overdraft{{Key{"b", "e"}, 6, CauseRemoved}}, a.Overdrafts("b"))
	a.SetBudget(b)
	same(t, "changed by bringing it back", []string{"ns/x"}, a.Refresh(noon))
	same(t, "overdraft once it is back", []Overdraft(nil), a.Overdrafts("b"))
	same(t, "spent", 3*GPUHour, a.spentOn(Key{"b", "e"}, noon))
	a.Open("ns/y", held(Key{"b", "e"}, "o", rqv1.RelationOwn, rqv1.RoleActive, 6))
	a.Refresh(noon)
	a.Close("ns/x", noon)
	same(t, "changed by an older one that closes", []string{"ns/y"}, a.Refresh(noon))
}

// TestLendingOverdraftStopsLendingAlone keeps the limits apart: each refuses by itself.
func TestLendingOverdraftStopsLendingAlone(t *testing.T) {
	a := accountsOf(of("b", "o",
		rqv1.Envelope{Name: "e", Concurrency: 20, Lending: &rqv1.Lending{Allow: true, To: []rqv1.ACLEntry{"*"},
			MaxConcurrency: ptr(int32(4))}}))
	a.Open("ns/x", held(Key{"b", "e"}, "x", rqv1.RelationSponsor, rqv1.RoleActive, 8))
	same(t, "payable for the owner", 12, a.Cover(Ask{Owner: "o", Flavor: "H100", GPUsPerPod: 1}, noon).Payable())
	same(t, "payable for a borrower", 0, a.Cover(Ask{Owner: "y", Flavor: "H100", GPUsPerPod: 1, Funding: from("o")},
		noon).Payable())
}
