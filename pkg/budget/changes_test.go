package budget

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// standing is a Budget of which some is used and, in GPU-hours, spent.
type standing struct {
	budget *rqv1.Budget
	gpus   map[string]int
	spent  Spend
}

// lot is a Budget with one envelope, named all, of which some GPUs are used.
func lot(name string, owner rqv1.Owner, gpus int32, used int, edit ...func(*rqv1.Envelope)) standing {
	e := rqv1.Envelope{Name: "all", Concurrency: gpus}
	for _, change := range edit {
		change(&e)
	}
	return standing{budget: of(name, owner, e), gpus: map[string]int{"all": used}}
}

func ofHours(most int64) func(*rqv1.Envelope) {
	return func(e *rqv1.Envelope) { e.MaxGPUHours = &most }
}

func lendsUpTo(most int32, to ...rqv1.ACLEntry) func(*rqv1.Envelope) {
	return func(e *rqv1.Envelope) { e.Lending = &rqv1.Lending{Allow: true, To: to, MaxConcurrency: &most} }
}

func standings(all []standing) *Accounts {
	a := NewAccounts(rates)
	for _, s := range all {
		a.SetBudget(s.budget)
		for name, gpus := range s.gpus {
			at := a.account(Key{s.budget.Name, name})
			at.gpus[holderOwner][useActive] = gpus
			at.buckets = []Bucket{{Start: at.window}}
			at.buckets[0].Spent[holderOwner][useActive] = s.spent
			at.sumSettled()
		}
	}
	return a
}

// TestChanges finds for each limit what would help, and by how much.
func TestChanges(t *testing.T) {
	run := Ask{Owner: "o:r", Flavor: "H100", GPUsPerPod: 8, Run: "run"}
	spares := run
	spares.Spares = 2
	long := run
	long.MaxDuration = 10 * time.Hour
	borrows := run
	borrows.Funding = from("mm")
	little := run
	little.Funding = &rqv1.RunFunding{AllowBorrow: true, MaxBorrowGPUs: ptr(int32(8)), Sponsors: []rqv1.Owner{"mm"}}
	night := lot("night", "o:r", 64, 0, func(e *rqv1.Envelope) { e.Start = after(8 * time.Hour) })
	spent := func(s standing, hours Spend) standing { s.spent = hours; return s }
	twice := lot("r", "o:r", 16, 0)
	capped(twice.budget, rqv1.AggregateCap{Name: "lot", Flavor: "H100", Envelopes: []string{"all"},
		MaxConcurrency: ptr(int32(24)), MaxGPUHours: ptr(int64(8))})
	lasting := func(most string) Change {
		return Change{"set spec.runtime.maxDuration to " + most + " or less, so that the GPU-hours that are left are enough",
			32}
	}
	for name, c := range map[string]struct {
		ask    Ask
		wanted int
		all    []standing
		want   []Change
	}{
		"nobody": {run, 16, []standing{lot("mm", "mm", 64, 0)}, []Change{
			{"ask an administrator for a Budget of o:r with an envelope of flavor H100 and concurrency 16", 16}}},
		"concurrency": {run, 32, []standing{lot("r", "o:r", 32, 8)}, []Change{
			{"raise envelopes[all].concurrency of Budget r from 32 to 40", 32}}},
		"concurrency, not a multiple of the pod": {run, 32, []standing{lot("r", "o:r", 30, 0)},
			[]Change{{"raise envelopes[all].concurrency of Budget r from 30 to 32", 32}}},
		"overdraft": {run, 32, []standing{lot("r", "o:r", 8, 12)}, []Change{
			{"raise envelopes[all].concurrency of Budget r from 8 to 44", 32}}},
		"spares": {spares, 48, []standing{lot("r", "o:r", 40, 0)}, []Change{
			{"raise envelopes[all].concurrency of Budget r from 40 to 48", 48}}},
		"GPU-hours for an hour": {run, 32, []standing{spent(lot("r", "o:r", 64, 0, ofHours(100)), 85*GPUHour)},
			[]Change{lasting("28m"), {"raise envelopes[all].maxGPUHours of Budget r from 100 to 117", 32}}},
		"GPU-hours to the end": {long, 32, []standing{spent(lot("r", "o:r", 64, 0, ofHours(100)), 80*GPUHour+GPUHour/2)},
			[]Change{lasting("36m"), {"raise envelopes[all].maxGPUHours of Budget r from 100 to 401", 32}}},
		"two limits": {run, 32, []standing{twice},
			[]Change{{"raise aggregateCaps[lot].maxGPUHours of Budget r from 8 to 32, and " +
				"envelopes[all].concurrency of Budget r from 16 to 32, and aggregateCaps[lot].maxConcurrency of Budget r from 24 " +
				"to 32", 32}}},
		"a lending limit": {borrows, 32, []standing{lot("mm", "mm", 64, 0, lendsUpTo(16, "o:r"))},
			[]Change{{"raise envelopes[all].lending.maxConcurrency of Budget mm from 16 to 32", 32}}},
		"a window": {run, 32, []standing{night}, []Change{{"wait until 2026-03-01T20:00:00Z, when a window opens", 32}}},
		"the Run's own limit, and a sponsor more": {little, 32, []standing{lot("mm", "mm", 64, 0, lendsUpTo(24, "o:*")),
			lot("other", "other", 8, 0, lendsUpTo(8, "*"))},
			[]Change{{"add other to spec.funding.sponsors of the Run: it would lend 8 GPUs, if maxBorrowGPUs is raised to 32",
				32},
				{"raise spec.funding.maxBorrowGPUs of the Run from 8 to 24", 24}}},
		"sponsors, who offer most first": {run, 32, []standing{lot("few", "few", 8, 0, lendsUpTo(8, "*")),
			lot("many", "many", 32, 0, lendsUpTo(32, "*")),
			lot("none", "none", 8, 8, lendsUpTo(8, "*")), lot("strict", "strict", 8, 0, lendsUpTo(8, "x"))},
			[]Change{{"set spec.funding.allowBorrow of the Run to true and add many to spec.funding.sponsors: it would lend " +
				"32 GPUs",
				32},
				{"set spec.funding.allowBorrow of the Run to true and add few to spec.funding.sponsors: it would lend 8 GPUs", 8}}},
	} {
		a := standings(c.all)
		before := a.Cover(c.ask, noon).Payable()
		if diff := cmp.Diff(c.want, a.Changes(c.ask, c.wanted, noon)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if now := a.Cover(c.ask, noon).Payable(); now != before {
			t.Errorf("%s: %d GPUs would be paid for after the question, %d before", name, now, before)
		}
	}
}
