package budget

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// A closed Lease that is told twice, as when the ledger is read again, is folded once, and its record says up to when.
func TestALeaseThatIsToldTwiceIsFoldedOnce(t *testing.T) {
	key := Key{"b", "e"}
	budget := of("b", "o", rqv1.Envelope{Name: "e", Concurrency: 8, MaxGPUHours: ptr(int64(100))})
	a := accountsOf(budget)
	a.Complete()
	c, ended := held(key, "o", rqv1.RelationOwn, rqv1.RoleActive, 4), noon.Add(-time.Minute)
	for range 2 {
		a.Open("ns/x", c)
		a.Close("ns/x", ended)
	}
	want := a.spentOn(key, noon)
	a.Settle("b", noon)
	r := a.Record("b")
	same(t, "through", ended.Unix(), r.Through)

	after := accountsOf(budget) // of a process that died before the Lease's object was deleted
	after.SetRecord(r)
	after.Open("ns/x", c)
	after.Close("ns/x", ended)
	after.Complete()
	same(t, "spent after the restart", want, after.spentOn(key, noon))
}

// Many closed Leases are settled bit by bit, those that ended first: none is left out of a record that speaks of its
// end, for a process that comes after.
func TestManyAreSettledBitByBit(t *testing.T) {
	budget := of("b", "o", rqv1.Envelope{Name: "e", Concurrency: 8}, rqv1.Envelope{Name: "f", Concurrency: 8})
	a, ends := accountsOf(budget), map[string]time.Time{}
	a.Complete()
	charge := func(i int) Charge {
		return held(Key{"b", []string{"e", "f"}[i%2]}, "o", rqv1.RelationOwn, rqv1.RoleActive, 1)
	}
	const n = 3*portion + portion/2
	for i := range n {
		name := fmt.Sprintf("ns/%05d", i)
		ends[name] = noon.Add(-time.Duration(i*i%97) * time.Second) // some forty end in a second
		a.Past(name, charge(i), ends[name])
	}
	want := a.Spent(noon)
	var portions []int
	for settled := 0; settled < n; {
		folded, changed := a.Settle("b", noon)
		if !changed {
			t.Fatalf("%d of %d are settled", settled, n)
		}
		settled += len(folded)
		portions = append(portions, len(folded))
		after := accountsOf(budget)
		after.SetRecord(a.Record("b"))
		for i := range n {
			name := fmt.Sprintf("ns/%05d", i)
			after.Past(name, charge(i), ends[name])
		}
		after.Complete()
		same(t, "spent after a restart", want, after.Spent(noon))
	}
	if most := slices.Max(portions); len(portions) != 4 || most > portion+100 {
		t.Errorf("settled in portions of %v", portions)
	}
	same(t, "spent", want, a.Spent(noon))
}

// TestKept holds what each Budget may keep against its rule: who has fewer keeps all, the others as many as one
// another.
func TestKept(t *testing.T) {
	for name, test := range map[string]struct {
		has         []int
		limit, keep int
	}{
		"nobody has any":                    {nil, 5, math.MaxInt},
		"there is room":                     {[]int{2, 3}, 5, math.MaxInt},
		"one has too many":                  {[]int{1, 2, 9}, 8, 5},
		"two have more than their share":    {[]int{1, 7, 9}, 8, 3},
		"all have more":                     {[]int{4, 4, 4}, 8, 2},
		"there are more who pay than rooms": {[]int{1, 1, 1}, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var budgets []*rqv1.Budget
			for i := range test.has {
				budgets = append(budgets, flat(fmt.Sprint("b", i), "o", 64))
			}
			a := accountsOf(budgets...)
			for i, n := range test.has {
				for j := range n {
					c := held(Key{fmt.Sprint("b", i), "e"}, "o", rqv1.RelationOwn, rqv1.RoleActive, 1)
					a.Past(fmt.Sprintf("ns/%d-%d", i, j), c, noon)
				}
			}
			same(t, "kept", test.keep, a.Kept(test.limit))
		})
	}
}

// Of more closed Leases than may be kept those go that ended first, but none that ended after an instant; whatever a
// process that comes after finds of them, as much is spent.
func TestWhatIsMoreThanMayBeKeptIsSettled(t *testing.T) {
	key, budget := Key{"b", "e"}, flat("b", "o", 64)
	const n, keep, young = 2*portion + 50, portion / 2, 100
	past := func(a *Accounts) {
		for i := range n {
			a.Past(fmt.Sprintf("ns/%05d", i), held(key, "o", rqv1.RelationOwn, rqv1.RoleActive, 1),
				noon.Add(time.Duration(i-n)*time.Second))
		}
	}
	a := accountsOf(budget)
	a.Complete()
	past(a)
	want := a.Spent(noon)
	next := 0
	for {
		folded := a.SettleBeyond("b", keep, noon.Add(-young*time.Second))
		if len(folded) == 0 {
			break
		}
		for _, lease := range folded {
			same(t, "the next to be folded", fmt.Sprintf("ns/%05d", next), lease)
			next++
		}
		after := accountsOf(budget)
		after.SetRecord(a.Record("b"))
		past(after)
		after.Complete()
		same(t, "spent after a restart", want, after.Spent(noon))
	}
	same(t, "folded", n-keep, next)
	same(t, "left", keep, a.Closed())
	for len(a.SettleBeyond("b", 1, noon.Add(-young*time.Second))) > 0 {
	}
	same(t, "left of the young", young-1, a.Closed())
	same(t, "spent", want, a.Spent(noon))
}
