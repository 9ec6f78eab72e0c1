package plan

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// drawnAt is when sizes are chosen, and allOpen when all windows that are drawn have opened.
var (
	drawnAt = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	allOpen = drawnAt.Add(time.Hour)
)

// drawBudgets draws Budgets of an owner, its parent, and two sponsors of which one lends: envelopes that may pay on
// some nodes alone, for few GPUs or GPU-hours, from now on or later, together or apart. What is charged to them at the
// moment is in the first accounts alone.
func drawBudgets(t *rapid.T) (charged, unheld *budget.Accounts) {
	charged, unheld = budget.NewAccounts(budget.Rates{Spare: 500}), budget.NewAccounts(budget.Rates{Spare: 500})
	for _, owner := range []rqv1.Owner{"org:a", "org", "lender", "miser"} {
		b := &rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: "b-" + string(owner[len(owner)-1])},
			Spec: rqv1.BudgetSpec{Owner: owner}}
		for n := range rapid.IntRange(0, 2).Draw(t, "envelopes") {
			b.Spec.Envelopes = append(b.Spec.Envelopes, drawEnvelope(t, fmt.Sprint("e", n), owner == "lender"))
		}
		if len(b.Spec.Envelopes) == 0 {
			continue
		}
		if rapid.IntRange(0, 3).Draw(t, "cap") == 0 {
			b.Spec.AggregateCaps = []rqv1.AggregateCap{{Name: "c", Envelopes: []string{"e0"},
				MaxConcurrency: ptr(rapid.Int32Range(0, 24).Draw(t, "most"))}}
		}
		charged.SetBudget(b)
		unheld.SetBudget(b)
		if gpus := rapid.IntRange(0, 8).Draw(t, "held"); gpus > 0 {
			charged.Open("held-"+b.Name, budget.Charge{Payer: budget.Key{Budget: b.Name, Envelope: "e0"}, Owner: owner,
				Run: "other", Relation: rqv1.RelationOwn, Role: rqv1.RoleActive, GPUs: gpus, Rate: budget.FullRate,
				Start: drawnAt, Flavor: "H100"})
		}
	}
	return charged, unheld
}

func drawEnvelope(t *rapid.T, name string, lends bool) rqv1.Envelope {
	e := rqv1.Envelope{Name: name, Flavor: "H100",
		Concurrency: rapid.SampledFrom([]int32{3, 4, 8, 12, 16, 64}).Draw(t, "gpus")}
	if pool := rapid.SampledFrom([]string{"", "", "small", "large", "none"}).Draw(t, "pays on"); pool != "" {
		e.Selector = map[string]string{"pool": pool}
	}
	if rapid.IntRange(0, 4).Draw(t, "hours") == 0 {
		e.MaxGPUHours = ptr(rapid.Int64Range(1, 40).Draw(t, "most hours"))
	}
	if rapid.IntRange(0, 4).Draw(t, "later") == 0 {
		e.Start = &metav1.Time{Time: drawnAt.Add(time.Minute)}
	}
	if lends {
		e.Lending = &rqv1.Lending{Allow: true, To: []rqv1.ACLEntry{"org:a"}}
		if rapid.Bool().Draw(t, "bounded") {
			e.Lending.MaxConcurrency = ptr(rapid.Int32Range(1, 12).Draw(t, "lends"))
		}
	}
	return e
}

// TestPaidPodSizeAgainstEverySize holds the size of pods to all that there are, each planned at each width on the
// fleet and with the Budgets of which nobody holds anything: the one with which the ranks are placed and paid for, now
// or else once all windows are open, at its total or else at the widest width, and of equal widths the largest (R14).
func TestPaidPodSizeAgainstEverySize(t *testing.T) {
	seen := map[string]int{}
	for seed := range 400 { // which hold each kind, whatever is drawn besides
		seen[rapid.Custom(paidSizeAgainstEverySize).Example(seed)]++
	}
	for _, kind := range []string{"paid", "smaller for the money", "paid later", "smaller later", "nobody pays"} {
		if seen[kind] == 0 {
			t.Errorf("of %v none is %s", seen, kind)
		}
	}
	rapid.Check(t, func(t *rapid.T) { paidSizeAgainstEverySize(t) })
}

// paidSizeAgainstEverySize draws a fleet, Budgets and a Run, and returns how the Run is paid for there.
func paidSizeAgainstEverySize(t *rapid.T) (kind string) {
	fleet, empty := drawMixed(t)
	fleet.SetSelectorKeys([]string{"pool"})
	empty.SetSelectorKeys([]string{"pool"})
	charged, unheld := drawBudgets(t)
	spec := drawUnsized(t)
	if rapid.Bool().Draw(t, "borrows") {
		spec.Funding = &rqv1.RunFunding{AllowBorrow: true, Sponsors: []rqv1.Owner{"lender", "miser"}}
		if rapid.Bool().Draw(t, "bounded") {
			spec.Funding.MaxBorrowGPUs = ptr(rapid.Int32Range(1, 12).Draw(t, "most"))
		}
	}
	whole := fleet.Whole("H100")
	got, refusal := DemandOf(spec, 0, whole, &Payers{Accounts: charged, Fleet: fleet, Now: drawnAt})
	if refusal != nil {
		return "refused"
	}
	inRoom, _ := DemandOf(spec, 0, whole, nil)
	now, later := widestPaid(spec, empty, unheld, drawnAt), widestPaid(spec, empty, unheld, allOpen)
	want := inRoom.GPUsPerPod
	switch {
	case now > 0:
		want, kind = now, "paid"
	case later > 0:
		want, kind = later, "paid later"
	default:
		kind = "nobody pays"
	}
	if got.GPUsPerPod != want {
		t.Fatalf("pods of %d, want %d: %s", got.GPUsPerPod, want, kind)
	}
	switch {
	case now > 0 && now < inRoom.GPUsPerPod:
		kind = "smaller for the money"
	case now == 0 && later > 0 && later < inRoom.GPUsPerPod:
		kind = "smaller later"
	}
	return kind
}

// widestPaid returns the size of pods with which a Run's ranks are planned at their widest at an instant, of equal
// widths the largest; 0 where it is with none.
func widestPaid(spec *rqv1.RunSpec, empty *topology.Fleet, accounts *budget.Accounts, at time.Time) (best int) {
	widest := 0
	for size := empty.Whole("H100").Largest(); size > 0; size-- {
		d, refusal := DemandOf(sizedAt(spec, size), 0, nil, nil)
		if refusal != nil {
			continue
		}
		for width := d.Pods(); width >= d.LeastPods && width*size > widest; width -= max(d.StepPods, 1) {
			narrower := d.At(width)
			narrower.SparesPerGroup = 0
			_, short := Gang(empty, accounts, narrower, Claim{Funding: spec.Funding}, narrower.EveryPod(), nil, at)
			if short == nil {
				best, widest = size, narrower.GPUs()
			}
		}
	}
	return best
}

// TestSparesDoNotChooseThePodSize draws what there is and a Run: with spares and without, its pods are as large.
func TestSparesDoNotChooseThePodSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fleet, _ := drawMixed(t)
		fleet.SetSelectorKeys([]string{"pool"})
		accounts, _ := drawBudgets(t)
		spec := drawUnsized(t)
		spec.SparesPerGroup = ptr(rapid.Int32Range(1, 32).Draw(t, "spare GPUs of a group"))
		none := spec.DeepCopy()
		none.SparesPerGroup = nil
		for name, payers := range map[string]*Payers{"by room": nil,
			"by money": {Accounts: accounts, Fleet: fleet, Now: drawnAt}} {
			with, refusal := DemandOf(spec, 0, fleet.Whole("H100"), payers)
			without, _ := DemandOf(none, 0, fleet.Whole("H100"), payers)
			if with.GPUsPerPod != without.GPUsPerPod {
				t.Fatalf("%s: pods of %d, and of %d without spares: %v", name, with.GPUsPerPod, without.GPUsPerPod, refusal)
			}
			if refusal == nil && Outgrown(spec, with, fleet.Whole("H100"), payers) {
				t.Fatalf("%s: pods of %d are outgrown at once", name, with.GPUsPerPod)
			}
		}
	})
}
