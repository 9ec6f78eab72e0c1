package budget

import (
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestGPUHoursAreNotPromisedTwice admits by what is left after all that runs has had its share (R7).
func TestGPUHoursAreNotPromisedTwice(t *testing.T) {
	hours := func(max int64) *Accounts {
		return accountsOf(of("b", "o", rqv1.Envelope{Name: "e", Concurrency: 100, MaxGPUHours: &max}))
	}
	ask := Ask{Owner: "o", Flavor: "H100", GPUsPerPod: 2}
	for _, tc := range []struct {
		name          string
		max           int64
		spares        int
		first, second time.Duration // maxDuration
		after         time.Duration
		pods          int // of 2 GPUs that the first asks for
		want          int // pods that the second may have then
	}{
		{"an hour each when nothing is said", 16, 0, 0, 0, 0, 4, 4},
		{"what was spent is gone, and another hour is promised", 24, 0, 0, 0, time.Hour, 4, 4},
		{"a whole maxDuration", 40, 0, 3 * time.Hour, time.Hour, 0, 4, 8},
		{"what is left of a maxDuration", 40, 0, 3 * time.Hour, time.Hour, 2 * time.Hour, 4, 8},
		{"a maxDuration that is over promises nothing, and is still spent", 40, 0, time.Hour, time.Hour, 2 * time.Hour, 4,
			12},
		{"half a second more is a second more", 16, 0, 0, time.Hour + time.Second/2, 0, 4, 3},
		{"spares at half the price", 16, 4, 0, 0, 0, 4, 6},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := hours(tc.max)
			first, second := ask, ask
			first.MaxDuration, first.Spares, second.MaxDuration = tc.first, tc.spares, tc.second
			if got := start(t, a, "r", first, tc.pods, noon); got[0] == "nobody" {
				t.Fatal("nobody pays for the first")
			}
			same(t, "pods for the second", tc.want, a.Cover(second, noon.Add(tc.after)).Offers[0].Pods)
		})
	}
}

func TestSparesCostLess(t *testing.T) {
	a := accountsOf(of("b", "o", rqv1.Envelope{Name: "e", Concurrency: 100, MaxGPUHours: ptr(int64(10))}))
	ask := Ask{Owner: "o", Flavor: "H100", GPUsPerPod: 1, Spares: 4}
	same(t, "payers of 9 and 4 spares", []string{"nobody"}, start(t, a, "r", ask, 13, noon))
	same(t, "payers of 8 and 4 spares", []string{"b/e 8 (own)", "b/e 4 spare (own)"}, start(t, a, "r", ask, 12, noon))
	same(t, "spent in an hour", 10*GPUHour, a.spentOn(Key{"b", "e"}, noon.Add(time.Hour)))
	same(t, "used", 12, a.Used(Key{"b", "e"}))
}

func TestMoreSparesThanThereIsTimeFor(t *testing.T) {
	a := accountsOf(of("b", "o", rqv1.Envelope{Name: "e", Concurrency: 100, MaxGPUHours: ptr(int64(1))}))
	ask := Ask{Owner: "o", Flavor: "H100", GPUsPerPod: 1, Spares: 4}
	same(t, "pods", 2, a.Cover(ask, noon).Offers[0].Pods)
	a = accountsOf(of("b", "o", rqv1.Envelope{Name: "e", Concurrency: 100, MaxGPUHours: ptr(int64(3))}))
	c := a.Cover(ask, noon)
	class := c.Class(nil)
	same(t, "payers when there are fewer spares than was said", []int{0, 0, 0, 0},
		c.Assign([]int{class, class, class, class}, []bool{false, false, true, true}))
	same(t, "payers of three and a spare", []int(nil),
		c.Assign([]int{class, class, class, class}, []bool{false, false, false, true}))
}

func TestALeaseThatEndsBeforeItStartsCostsNothing(t *testing.T) {
	a := accountsOf(flat("b", "o", 8))
	c := held(Key{"b", "e"}, "o", rqv1.RelationOwn, rqv1.RoleActive, 4)
	a.Past("ns/x", c, c.Start.Add(-time.Minute))
	same(t, "spent", Spend(0), a.spentOn(Key{"b", "e"}, noon))
}

func TestOpportunisticWorkUsesNoConcurrency(t *testing.T) {
	a := accountsOf(of("b", "o", rqv1.Envelope{Name: "e", Concurrency: 8, MaxGPUHours: ptr(int64(100))}))
	c := held(Key{"b", "e"}, "o", rqv1.RelationOwn, rqv1.RoleBorrowed, 20)
	c.Rate = 250
	a.Open("ns/x", c)
	same(t, "used", 0, a.Used(Key{"b", "e"}))
	same(t, "spent", 5*GPUHour, a.spentOn(Key{"b", "e"}, noon))
	same(t, "held", 20*GPUHour, a.accounts[Key{"b", "e"}].spent(noon).held)
	a.Refresh(noon)
	same(t, "overdraft", []Overdraft(nil), a.Overdrafts("b"))
}

func TestWindowsStartFresh(t *testing.T) {
	key := Key{"b", "e"}
	b := func(from, to time.Duration) *rqv1.Budget {
		return of("b", "o", rqv1.Envelope{Name: "e", Concurrency: 8, Start: after(from), End: after(to),
			MaxGPUHours: ptr(int64(100))})
	}
	a := accountsOf(b(-2*time.Hour, time.Hour))
	c := held(key, "o", rqv1.RelationOwn, rqv1.RoleActive, 4)
	c.Start = noon.Add(-3 * time.Hour)
	a.Open("ns/x", c)
	spent := func(want Spend, what string, at time.Duration) {
		t.Helper()
		same(t, "spent "+what, want, a.spentOn(key, noon.Add(at)))
	}
	spent(8*GPUHour, "in the window alone", 0)
	spent(16*GPUHour, "past the end: somebody pays for every second", 2*time.Hour)
	a.SetBudget(b(-2*time.Hour, 5*time.Hour))
	spent(16*GPUHour, "after the end moved", 2*time.Hour)
	a.SetBudget(b(time.Hour, 5*time.Hour))
	spent(4*GPUHour, "in a window that starts later", 2*time.Hour)
	a.SetBudget(b(3*time.Hour, 5*time.Hour))
	spent(0, "before the window opens", 2*time.Hour)
	spent(4*GPUHour, "an hour after it opened", 4*time.Hour)
	a.SetBudget(b(-2*time.Hour, 5*time.Hour))
	spent(16*GPUHour, "in the first window, which is back", 2*time.Hour)
}

func TestRatesAndSpend(t *testing.T) {
	for text, want := range map[string]Rate{"": 1000, "1": 1000, "1.000": 1000, "0": 0, "0.5": 500, "0.05": 50,
		"0.125": 125, "0.": 0} {
		got, err := ParseRate(text)
		if err != nil || got != want {
			t.Errorf("rate %q: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"1.001", "2", "-0.5", "0.0005", ".5", "half", "0.5x", "1e0", "65.536", "0.5.5"} {
		if got, err := ParseRate(text); err == nil {
			t.Errorf("rate %q is taken for %d", text, got)
		}
	}
	for rate, want := range map[Rate]string{1000: "1", 0: "0", 500: "0.5", 50: "0.05", 125: "0.125"} {
		same(t, "rate", want, rate.String())
	}
	for spend, want := range map[Spend]string{0: "0.00000", GPUSecond: "0.00027", GPUHour: "1.00000",
		3*GPUHour/2 + 1: "1.50000", -GPUHour / 2: "-0.50000"} {
		same(t, "spend", want, spend.String())
	}
	for _, text := range []string{"x", "-1", "1.000001", "1.+2", "9000000000000", "1.-2"} {
		if got, err := ParseSpend(text); err == nil {
			t.Errorf("spend %q is taken for %s", text, got)
		}
	}
	got, err := ParseSpend("12.34567")
	if err != nil || got.String() != "12.34567" {
		t.Errorf("spend 12.34567 reads as %s, %v", got, err)
	}
}

// A Lease that was opened by a clock that was fast gives nothing back when the clock comes right: it has spent nothing
// until it begins.
func TestALeaseThatBeginsInTheFutureHasSpentNothing(t *testing.T) {
	key := Key{"b", "e"}
	a := accountsOf(of("b", "o", rqv1.Envelope{Name: "e", Concurrency: 100, MaxGPUHours: ptr(int64(100))}))
	a.Past("ns/before", held(key, "o", rqv1.RelationOwn, rqv1.RoleActive, 60), noon)
	early := held(key, "o", rqv1.RelationOwn, rqv1.RoleBorrowed, 4)
	early.Start, early.Rate = noon.Add(3*time.Hour), FullRate
	late := early
	late.Role, late.Start = rqv1.RoleActive, noon.Add(5*time.Hour)
	a.Open("ns/early", early)
	a.Open("ns/late", late)
	at := a.accounts[key]
	spent := func(want, held Spend, after time.Duration) {
		t.Helper()
		got := at.spent(noon.Add(after))
		same(t, "spent after "+after.String(), []Spend{want, held}, []Spend{got.all(), got.held})
	}
	spent(60*GPUHour, 0, 0)
	spent(60*GPUHour, 0, 3*time.Hour)
	spent(64*GPUHour, 4*GPUHour, 4*time.Hour)
	spent(68*GPUHour, 8*GPUHour, 5*time.Hour)
	spent(76*GPUHour, 12*GPUHour, 6*time.Hour)
	spent(60*GPUHour, 0, time.Hour)
	same(t, "pods beside them", 32, a.Cover(Ask{Owner: "o", Flavor: "H100", GPUsPerPod: 1}, noon).Payable())
	a.Void("ns/late")
	spent(60*GPUHour, 0, -time.Hour)
	a.Close("ns/early", early.Start)
	spent(60*GPUHour, 0, 0)
	same(t, "beginnings that are kept", 0, len(at.begun.at))
}

// TestEnormousNumbers keeps sums of what is promised for very long from passing what an int64 holds.
func TestEnormousNumbers(t *testing.T) {
	const century = 100 * 365 * 24 * time.Hour
	a := accountsOf(of("b", "o", rqv1.Envelope{Name: "e", Concurrency: 10_000_000,
		MaxGPUHours: ptr(int64(1_000_000_000_000))}))
	ask := Ask{Owner: "o", Flavor: "H100", GPUsPerPod: 1_000_000, MaxDuration: century}
	same(t, "pods", 5, a.Cover(ask, noon).Offers[0].Pods)
	for range 9 {
		c := held(Key{"b", "e"}, "o", rqv1.RelationOwn, rqv1.RoleActive, 1_000_000)
		c.Until = noon.Add(century)
		a.Open("ns/"+string(rune('a'+len(a.charges))), c)
	}
	same(t, "pods when more is promised than there is", 0, a.Cover(ask, noon).Offers[0].Pods)
}
