package budget

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// lender has all kinds of work: own, family's and a borrower's, spares and opportunistic work, an envelope that is
// gone.
func lender() (*Accounts, *rqv1.Budget) {
	b := capped(of("b", "o", rqv1.Envelope{Name: "e", Concurrency: 40, MaxGPUHours: ptr(int64(200)),
		Lending: &rqv1.Lending{Allow: true, To: []rqv1.ACLEntry{"x"}, MaxConcurrency: ptr(int32(8)),
			MaxGPUHours: ptr(int64(20))}},
		rqv1.Envelope{Name: "f", Concurrency: 10, Start: after(time.Hour)}),
		rqv1.AggregateCap{Name: "all", Envelopes: []string{"e", "f"}, MaxConcurrency: ptr(int32(30)),
			MaxGPUHours: ptr(int64(1000))})
	b.Generation = 7
	a := accountsOf(b, flat("child", "o:c", 1))
	key := Key{"b", "e"}
	a.Open("ns/own", held(key, "o", rqv1.RelationOwn, rqv1.RoleActive, 10))
	a.Open("ns/child", held(key, "o:c", rqv1.RelationAncestor, rqv1.RoleActive, 4))
	a.Open("ns/lent", held(key, "x", rqv1.RelationSponsor, rqv1.RoleActive, 3))
	a.Open("ns/spare", held(key, "x", rqv1.RelationSponsor, rqv1.RoleSpare, 2))
	a.Open("ns/opportunistic", held(key, "o", rqv1.RelationOwn, rqv1.RoleBorrowed, 6))
	a.Open("ns/gone", held(Key{"b", "gone"}, "o", rqv1.RelationOwn, rqv1.RoleActive, 1))
	a.Past("ns/past", held(key, "o", rqv1.RelationOwn, rqv1.RoleActive, 5), noon.Add(-time.Minute))
	a.Refresh(noon)
	return a, b
}

// An envelope that a Budget has no more is told of for as long as it pays for something.
func TestAnEnvelopeThatIsGoneAndPaysForNothing(t *testing.T) {
	b := flat("b", "org:a", 8)
	a := accountsOf(b)
	a.Open("ns/x", held(Key{"b", "gone"}, "org:a", rqv1.RelationOwn, rqv1.RoleActive, 4))
	same(t, "envelopes, one of which is gone and pays", 2, len(a.Status(b, noon).Envelopes))
	a.Close("ns/x", noon)
	same(t, "envelopes, once it pays for nothing", 1, len(a.Status(b, noon).Envelopes))
}

func TestStatus(t *testing.T) {
	a, b := lender()
	want := rqv1.BudgetStatus{
		ObservedGeneration: 7, ObservedAt: &metav1.Time{Time: noon}, UsedGPUs: 20, OverdraftGPUs: 1, HeadroomGPUs: 11,
		Envelopes: []rqv1.EnvelopeStatus{
			{Name: "e", OwnedGPUs: 10, FamilyGPUs: 4, LentGPUs: 3, SpareGPUs: 2, OpportunisticGPUs: 6, HeadroomGPUs: 11,
				LendableGPUs: 3, LendingGPUs: 5,
				GPUHours: &rqv1.GPUHours{Spent: "22.91666", Owned: "14.91666", Family: "4.00000", Lent: "3.00000", Spare: "1.00000",
					Opportunistic: "6.00000", Lending: "4.00000", Promised: "18.00000", LendingPromised: "4.00000", Left: "177.08333",
					Hourly: "18.00000"}},
			{Name: "f", GPUHours: &rqv1.GPUHours{Spent: "0.00000"}},
			{Name: "gone", OverdraftGPUs: 1, GPUHours: &rqv1.GPUHours{Spent: "1.00000", Owned: "1.00000", Promised: "1.00000",
				Hourly: "1.00000"}},
		},
		AggregateCaps: []rqv1.AggregateCapStatus{{Name: "all", UsedGPUs: 19, HeadroomGPUs: ptr(int32(11)),
			GPUHours: &rqv1.GPUHours{Spent: "22.91666", Promised: "18.00000", Left: "977.08333", Hourly: "18.00000"}}},
	}
	same(t, "status", want, a.Status(b, noon))
}
