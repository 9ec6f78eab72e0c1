package budget

import (
	"encoding/json"
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

func TestSettle(t *testing.T) {
	key, window := Key{"b", "e"}, -90*time.Minute
	b := of("b", "o", rqv1.Envelope{Name: "e", Concurrency: 8, Start: after(window)})
	a := accountsOf(b)
	lease := func(gpus int, since time.Duration) Charge {
		c := held(key, "o", rqv1.RelationOwn, rqv1.RoleActive, gpus)
		c.Start = noon.Add(-since)
		return c
	}
	a.Open("ns/open", lease(1, time.Hour))
	a.Past("ns/old", lease(2, 2*time.Hour), noon.Add(-time.Hour))
	a.Past("ns/new", lease(4, time.Hour), noon.Add(-time.Minute))
	spent := func(want Spend, what string) {
		t.Helper()
		same(t, "spent "+what, want, a.spentOn(key, noon))
	}
	total := 1*GPUHour + 1*GPUHour + 4*59*60*GPUSecond
	spent(total, "before")
	if _, ok := a.Settle("b", noon.Add(-61*time.Minute)); ok {
		t.Errorf("something is folded although nothing ended by then")
	}
	folded, _ := a.Settle("b", noon.Add(-time.Hour))
	record := a.Record("b")
	same(t, "folded", []string{"ns/old"}, folded)
	start := noon.Add(window).Unix()
	buckets := []Bucket{{Start: 0}, {Start: start}}
	buckets[0].Spent[holderOwner][useActive], buckets[1].Spent[holderOwner][useActive] = GPUHour, GPUHour
	want := Record{Budget: "b", Through: noon.Add(-time.Hour).Unix(), Envelopes: map[string][]Bucket{"e": buckets},
		Windows: map[string]int64{"e": start}}
	same(t, "record", want, record)
	spent(total, "after")
	same(t, "what is left to settle", []bool{false, true}, []bool{a.IsPast("ns/old", key), a.IsPast("ns/new", key)})
	a.Past("ns/old", lease(2, 2*time.Hour), noon.Add(-time.Hour))
	spent(total, "after the settled Lease was seen again")
	a.Past("ns/newer", lease(1, time.Hour), noon.Add(-time.Minute))
	total += 59 * 60 * GPUSecond
	same(t, "changed when an object is gone", []string{"b"}, a.Forget("ns/new"))
	same(t, "what is left then", []bool{false, true}, []bool{a.IsPast("ns/new", key), a.IsPast("ns/newer", key)})
	same(t, "changed when nothing is", []string(nil), a.Forget("ns/new"))
	spent(total, "after Leases were deleted")
}

func TestRecordSurvivesStorage(t *testing.T) {
	key := Key{"b", "e"}
	a := accountsOf(of("b", "o", rqv1.Envelope{Name: "e", Concurrency: 8, Start: after(-90 * time.Minute)}))
	c := held(key, "o", rqv1.RelationSponsor, rqv1.RoleBorrowed, 3)
	c.Rate = 125
	a.Past("ns/x", c, noon.Add(-time.Minute))
	want := a.spentOn(key, noon)
	a.Settle("b", noon)
	record := a.Record("b")
	text, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	var stored Record
	if err := json.Unmarshal(text, &stored); err != nil {
		t.Fatal(err)
	}
	for _, leaseFirst := range []bool{true, false} {
		b := NewAccounts(rates) // the Budget itself is gone: the record knows its window
		if leaseFirst {
			b.Past("ns/x", c, noon.Add(-time.Minute))
		}
		b.SetRecord(stored)
		b.Past("ns/x", c, noon.Add(-time.Minute))
		same(t, "spent after a restart", want, b.spentOn(key, noon))
		same(t, "record after a restart", record, b.Record("b"))
	}
}

// TestClockThatJumps sets the clock a month ahead, has the ledger settled, and sets it back: what is closed after that
// counts, now and after a restart, and so does what the fast clock made end in the future.
func TestClockThatJumps(t *testing.T) {
	const month = 30 * 24 * time.Hour
	key := Key{"b", "e"}
	a := accountsOf(flat("b", "o", 64))
	a.Complete()
	lease := held(key, "o", rqv1.RelationOwn, rqv1.RoleActive, 1)
	a.Past("ns/before", lease, noon)
	a.Past("ns/ahead", lease, noon.Add(month))
	want := GPUHour + GPUHour + Spend(month/time.Second)*GPUSecond
	folded, _ := a.Settle("b", noon.Add(2*month))
	record := a.Record("b")
	same(t, "folded", []string{"ns/ahead", "ns/before"}, folded)
	same(t, "through", noon.Add(month).Unix(), record.Through)

	a.Past("ns/after", lease, noon.Add(time.Hour)) // while the objects of the others are still there
	want += 2 * GPUHour
	same(t, "spent", want, a.spentOn(key, noon.Add(month)))
	folded, _ = a.Settle("b", noon.Add(-month))
	late := a.Record("b")
	same(t, "folded at once", []string{"ns/after"}, folded)

	for _, name := range []string{"ns/before", "ns/ahead", "ns/after"} {
		a.Dropped("b", name)
	}
	a.Past("ns/later", lease, noon.Add(2*time.Hour))
	want += 3 * GPUHour
	same(t, "spent in the end", want, a.spentOn(key, noon.Add(month)))
	folded, changed := a.Settle("b", noon.Add(-month))
	last := a.Record("b")
	same(t, "folded in the end", 0, len(folded))
	same(t, "the record is to be written again, and speaks of no end", []any{true, int64(0)}, []any{changed, last.Through})

	for name, stored := range map[string]Record{"with objects that were not deleted": late, "with none of them": last} {
		b := accountsOf(flat("b", "o", 64))
		b.SetRecord(stored)
		if stored.Through > 0 {
			b.Past("ns/ahead", lease, noon.Add(month))
			b.Past("ns/after", lease, noon.Add(time.Hour))
		}
		if stored.Through == 0 {
			b.Past("ns/later", lease, noon.Add(2*time.Hour))
		}
		b.Complete()
		if stored.Through > 0 {
			b.Past("ns/later", lease, noon.Add(2*time.Hour)) // it ends by what the record says, and is not in it
		}
		same(t, "spent after a restart "+name, want, b.spentOn(key, noon.Add(month)))
	}
}
