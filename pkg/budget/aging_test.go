package budget

import (
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
	r, _, _ := a.Settle("b", noon)
	same(t, "through", ended.Unix(), r.Through)

	after := accountsOf(budget) // of a process that died before the Lease's object was deleted
	after.SetRecord(r)
	after.Open("ns/x", c)
	after.Close("ns/x", ended)
	after.Complete()
	same(t, "spent after the restart", want, after.spentOn(key, noon))
}
