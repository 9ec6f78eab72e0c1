package budget

import (
	"fmt"
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
