package plan

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// A refusal for want of money says by how many GPUs it is short: some, and no more than are asked for. Spares at half
// the price over several payers may not be payable although the sum of what each could pay is enough.
func TestRefusalsAreShortOfSomething(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := budget.NewAccounts(budget.Rates{
			Spare: budget.Rate(rapid.SampledFrom([]int{0, 250, 500, 1000}).Draw(t, "spare rate"))})
		b := &rqv1.Budget{Spec: rqv1.BudgetSpec{Owner: "org:a"}}
		b.Name = "b"
		for i := range rapid.IntRange(1, 3).Draw(t, "envelopes") {
			e := rqv1.Envelope{Name: fmt.Sprint("e", i), Flavor: "H100",
				Concurrency: rapid.Int32Range(1, 16).Draw(t, "concurrency"),
				MaxGPUHours: ptr(rapid.Int64Range(1, 16).Draw(t, "hours"))}
			if region := rapid.SampledFrom([]string{"", "west", "east"}).Draw(t, "region"); region != "" {
				e.Selector = map[string]string{"region": region}
			}
			b.Spec.Envelopes = append(b.Spec.Envelopes, e)
		}
		a.SetBudget(b)
		d := Demand{Owner: "org:a", Flavor: "H100", GPUsPerPod: rapid.SampledFrom([]int{1, 2, 4}).Draw(t, "GPUs"),
			Groups:       rapid.IntRange(1, 2).Draw(t, "groups"),
			PodsPerGroup: rapid.IntRange(1, 4).Draw(t, "pods"), SparesPerGroup: rapid.IntRange(0, 2).Draw(t, "spares"),
			Confined: true}
		missing := all(d)
		for i := range d.Spares() {
			missing = append(missing, Missing{Part: rank.Part{Index: i, Spare: true}})
		}
		_, refusal := Gang(fleet(), a, d, Claim{}, missing, nil, noon)
		if refusal != nil && refusal.AboutMoney() && (refusal.ShortGPUs <= 0 || refusal.ShortGPUs > refusal.WantedGPUs) {
			t.Fatalf("short by %d of %d GPUs: %s", refusal.ShortGPUs, refusal.WantedGPUs, refusal.Message)
		}
	})
}
