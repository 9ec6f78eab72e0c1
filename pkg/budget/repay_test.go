package budget

import (
	"fmt"
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestRepay asks for which of three ranks that a sponsor pays for the owner's own envelopes could pay instead, of
// one on a node in the east and two in the west.
func TestRepay(t *testing.T) {
	most := int32(8)
	for name, c := range map[string]struct {
		own  *rqv1.Budget
		asks time.Duration
		owed func(Key) []Owed
		most int
		want []string
	}{
		"all":                     {own: flat("own", "org:a", 32), most: 3, want: []string{"0 own/e", "1 own/e", "2 own/e"}},
		"as many as was given":    {own: flat("own", "org:a", 32), most: 1, want: []string{"0 own/e"}},
		"as much as there is":     {own: flat("own", "org:a", 23), most: 3, want: []string{"0 own/e", "1 own/e"}},
		"nothing left":            {own: flat("own", "org:a", 7), most: 3},
		"family does not step in": {own: flat("family", "org", 32), most: 3},
		"where it pays": {own: of("own", "org:a", rqv1.Envelope{Name: "e", Concurrency: 32,
			Selector: map[string]string{"region": "west"}}), most: 3, want: []string{"1 own/e", "2 own/e"}},
		"under a cap of several envelopes": {own: capped(of("own", "org:a", rqv1.Envelope{Name: "e", Concurrency: 8},
			rqv1.Envelope{Name: "f", Concurrency: 8}), rqv1.AggregateCap{Name: "both", Flavor: "H100",
			Envelopes: []string{"e", "f"}, MaxConcurrency: &most}), most: 3, want: []string{"0 own/e"}},
		"by two envelopes": {own: of("own", "org:a", rqv1.Envelope{Name: "e", Concurrency: 8},
			rqv1.Envelope{Name: "f", Concurrency: 8}), most: 3, want: []string{"0 own/e", "1 own/f"}},
		"in its hours": {own: of("own", "org:a", rqv1.Envelope{Name: "e", Concurrency: 32, MaxGPUHours: ptr(int64(16))}),
			asks: 2 * time.Hour, most: 3, want: []string{"0 own/e"}},
		"not what is kept for another": {own: flat("own", "org:a", 16), most: 3, want: []string{"0 own/e"},
			owed: func(Key) []Owed { return []Owed{{Run: "other", At: noon, GPUs: 8}} }},
		"before its window": {own: of("own", "org:a", rqv1.Envelope{Name: "e", Concurrency: 32, Start: after(time.Hour)}),
			most: 3},
	} {
		a := accountsOf(c.own, flat("s", "x:s", 24))
		var leases []string
		for i, region := range []string{"east", "west", "west"} {
			charge := held(Key{"s", "e"}, "org:a", rqv1.RelationSponsor, rqv1.RoleActive, 8)
			charge.Node = fmt.Sprintf("n%d", i)
			a.SetNode(charge.Node, "H100", map[string]string{"region": region})
			leases = append(leases, fmt.Sprint(i))
			a.Open(leases[i], charge)
		}
		before := a.Usage()
		ask := Ask{Owner: "org:a", Flavor: "H100", Run: "run", MaxDuration: c.asks, Owed: c.owed}
		var got []string
		for _, r := range a.Repay(ask, leases, c.most, noon) {
			got = append(got, r.Lease+" "+r.Charge.Payer.String())
			if r.Charge.Relation != rqv1.RelationOwn || !r.Charge.Start.Equal(noon) ||
				!r.Charge.Admitted.Equal(noon.Add(-time.Hour)) {
				t.Errorf("%s: the owner is charged %+v", name, r.Charge)
			}
		}
		same(t, name, c.want, got)
		same(t, name+": what is charged meanwhile", before, a.Usage())
	}
}
