package budget

import (
	"math/rand"
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

func TestOrderOfPayers(t *testing.T) {
	a := accountsOf(
		of("own-b", "org:a", rqv1.Envelope{Name: "open", Concurrency: 4}),
		of("own-a", "org:a", rqv1.Envelope{Name: "open", Concurrency: 4},
			rqv1.Envelope{Name: "late", Concurrency: 4, End: after(48 * time.Hour)},
			rqv1.Envelope{Name: "early", Concurrency: 4, End: after(24 * time.Hour)},
			rqv1.Envelope{Name: "other", Concurrency: 4, Flavor: "A100"}),
		of("sib-z", "org:b", rqv1.Envelope{Name: "e", Concurrency: 4, End: after(time.Hour)}), flat("sib-y", "org:c", 4),
		flat("org", "org", 4), flat("s1", "x:s1", 4), flat("s2", "x:s2", 4),
	)
	for _, s := range []string{"s1", "s2"} {
		a.Budget(s).Spec.Envelopes[0].Lending = lends("org:a")
	}
	ask := Ask{Owner: "org:a", Flavor: "H100", GPUsPerPod: 2, Funding: from("x:s2", "x:s1")}
	same(t, "offers", lines(`
0 own own-a/early: 2 pods, concurrency: 4 of 4 GPUs left
0 own own-a/late: 2 pods, concurrency: 4 of 4 GPUs left
0 own own-a/open: 2 pods, concurrency: 4 of 4 GPUs left
0 own own-b/open: 2 pods, concurrency: 4 of 4 GPUs left
1 sibling sib-z/e: 2 pods, concurrency: 4 of 4 GPUs left
1 sibling sib-y/e: 2 pods, concurrency: 4 of 4 GPUs left
2 ancestor org/e: 2 pods, concurrency: 4 of 4 GPUs left
3 sponsor s2/e: 2 pods, concurrency: 4 of 4 GPUs left
4 sponsor s1/e: 2 pods, concurrency: 4 of 4 GPUs left`), offers(a.Cover(ask, noon)))
	same(t, "payers", []string{"own-a/early 4 (own)", "own-a/late 4 (own)", "own-a/open 4 (own)", "own-b/open 4 (own)",
		"sib-z/e 4 (sibling)",
		"sib-y/e 4 (sibling)", "org/e 4 (ancestor)", "s2/e 4 (sponsor)", "s1/e 2 (sponsor)"}, start(t, a, "r", ask, 17, noon))
	same(t, "payers of two more pods", []string{"nobody"}, start(t, a, "s", ask, 2, noon))
}

func TestSelectors(t *testing.T) {
	a := accountsOf(of("b", "org:a",
		rqv1.Envelope{Name: "west", Concurrency: 4, Selector: map[string]string{"region": "west"}},
		rqv1.Envelope{Name: "named", Concurrency: 4, Selector: map[string]string{"fabric.domain": "*"}},
	))
	same(t, "selector keys", []string{"fabric.domain", "region"}, a.SelectorKeys())
	c := a.Cover(Ask{Owner: "org:a", Flavor: "H100", GPUsPerPod: 4}, noon)
	west := c.Class(map[string]string{"region": "west", "fabric.domain": "A"})
	east := c.Class(map[string]string{"region": "east", "fabric.domain": "B"})
	same(t, "the class of a like node", east, c.Class(map[string]string{"region": "south", "fabric.domain": "C"}))
	same(t, "the class of nodes that no selector matches", -1, c.Class(map[string]string{"region": "east"}))
	none := []bool{false, false}
	// The envelope for any domain comes first by name, but the pod in the east needs it.
	same(t, "payers", []string{"b/west 4 (own)", "b/named 4 (own)"}, paid(c, c.Assign([]int{west, east}, none), none, 4))
	same(t, "payers of two pods in the east", []int(nil), c.Assign([]int{east, east}, none))
	same(t, "payers of a pod where nobody pays", []int(nil), c.Assign([]int{west, -1}, none))
	same(t, "payers of nothing", []int{}, c.Assign(nil, nil))
}

// TestSharedCapAcrossClasses has an earlier offer pay less than it could, because a later one under the same cap is the
// only one that pays in the east.
func TestSharedCapAcrossClasses(t *testing.T) {
	west, east := map[string]string{"region": "west"}, map[string]string{"region": "east"}
	a := accountsOf(flat("org", "org", 1),
		capped(of("a", "org:a", rqv1.Envelope{Name: "a-west", Concurrency: 400, Selector: west},
			rqv1.Envelope{Name: "b-east", Concurrency: 400, Selector: east}),
			rqv1.AggregateCap{Name: "all", Envelopes: []string{"a-west", "b-east"}, MaxConcurrency: ptr(int32(500))}),
		of("b", "org:b", rqv1.Envelope{Name: "e", Concurrency: 600, Selector: west}))
	c := a.Cover(Ask{Owner: "org:a", Flavor: "H100", GPUsPerPod: 1}, noon)
	w, e := c.Class(west), c.Class(east)
	classes := make([]int, 1000)
	for i := range classes {
		if classes[i] = w; i >= 700 {
			classes[i] = e
		}
	}
	spare := make([]bool, 1000)
	same(t, "payers", []string{"a/a-west 201 (own)", "b/e 499 (sibling)", "a/b-east 299 (own)", "org/e 1 (ancestor)"},
		paid(c, c.Assign(classes, spare), spare, 1))
	demand := make([]int, 2)
	demand[w], demand[e] = 801, 300
	same(t, "whether all that is payable is covered", true, c.Covers(demand))
	demand[w]++
	same(t, "whether one more in the west is covered", false, c.Covers(demand))
	same(t, "what is payable", 1101, c.Payable())
}

func TestKeptPodsGoOnBeingPaid(t *testing.T) {
	a := accountsOf(
		flat("org", "org", 0), flat("low", "org:a", 8),
		of("shut", "org:b", rqv1.Envelope{Name: "e", Concurrency: 8, End: after(0)}),
		of("lender", "x", rqv1.Envelope{Name: "e", Concurrency: 16, Lending: lends("*")}), flat("hidden", "org:c", 8),
	)
	a.Budget("hidden").Spec.Envelopes[0].Sharing = rqv1.SharingNone
	a.Open("ns/over", held(Key{"low", "e"}, "org:a", rqv1.RelationOwn, rqv1.RoleActive, 12))
	ask := Ask{Owner: "org:a", Flavor: "H100", GPUsPerPod: 4, Run: "run", Funding: from("x"), Kept: map[Key]Kept{
		{"low", "e"}: {Pods: 1}, {"shut", "e"}: {Pods: 1}, {"hidden", "e"}: {Pods: 1},
		{"gone", "e"}: {Pods: 1, Relation: rqv1.RelationSponsor}}}
	ask.Funding.MaxBorrowGPUs = ptr(int32(8))
	c := a.Cover(ask, noon)
	var got []string
	for _, o := range c.Offers {
		got = append(got, o.Key.String()+" "+string(o.Relation)+" "+string(rune('0'+o.Pods)))
	}
	same(t, "offers", []string{"low/e own 1", "shut/e sibling 1", "hidden/e sibling 1", "org/e ancestor 0",
		"lender/e sponsor 2", "gone/e sponsor 1"}, got)
	same(t, "whether the one that is gone comes after the sponsors", true, c.Offers[5].Step > c.Offers[4].Step)
	same(t, "payable, the lender and the one that is gone within what may be borrowed", 20, c.Payable())
	_, alone := c.BorrowLimit(32)
	same(t, "whether the borrow limit is all that keeps 32 from being paid for", true, alone)
	_, alone = c.BorrowLimit(33)
	same(t, "whether it is all that keeps 33 from being paid for", false, alone)
}

// TestKeptPodsKeepTheRelation: what paid as the owner's own goes on doing so when its Budget is gone, and is no debt to
// a sponsor.
func TestKeptPodsKeepTheRelation(t *testing.T) {
	a := accountsOf(flat("other", "org:a", 1))
	ask := Ask{Owner: "org:a", Flavor: "H100", GPUsPerPod: 8, Run: "run", Funding: from("x"),
		Kept: map[Key]Kept{{"gone", "e"}: {1, rqv1.RelationOwn}}}
	ask.Funding.MaxBorrowGPUs = ptr(int32(0))
	same(t, "who pays", []string{"gone/e 8 (own)"}, start(t, a, "run", ask, 1, noon))
}

func TestChargesOutliveTheirBudget(t *testing.T) {
	b := flat("b", "org:a", 8)
	a := accountsOf(b)
	ask := Ask{Owner: "org:a", Flavor: "H100", GPUsPerPod: 1}
	c := held(Key{"b", "e"}, "org:a", rqv1.RelationOwn, rqv1.RoleActive, 6)
	a.Open("ns/x", c)
	a.Open("ns/x", c)
	a.DeleteBudget("b")
	same(t, "payable without the Budget", 0, a.Cover(ask, noon).Payable())
	a.SetBudget(b)
	same(t, "payable with the Budget back", 2, a.Cover(ask, noon).Payable())
	same(t, "spent since an hour", 6*GPUHour, a.spentOn(Key{"b", "e"}, noon))
	if _, ok := a.Close("ns/x", noon); !ok {
		t.Errorf("the open Lease is not known")
	}
	if _, ok := a.Close("ns/x", noon); ok {
		t.Errorf("a Lease closed twice")
	}
	same(t, "usage after closing", map[Key]int{}, a.Usage())
	same(t, "spent an hour later", 6*GPUHour, a.spentOn(Key{"b", "e"}, noon.Add(time.Hour)))
}

func TestALeaseIsOpenOrClosedButNotBoth(t *testing.T) {
	key := Key{"b", "e"}
	a := accountsOf(flat("b", "org:a", 8))
	c := held(key, "org:a", rqv1.RelationOwn, rqv1.RoleActive, 4)
	a.Open("ns/x", c)
	a.Past("ns/x", c, noon)
	same(t, "used once it is closed", 0, a.Used(key))
	same(t, "spent by the closed one", 4*GPUHour, a.spentOn(key, noon.Add(time.Hour)))
	a.Open("ns/x", c)
	same(t, "whether the open one is past", false, a.IsPast("ns/x", key))
	same(t, "spent by the one that is open again", 8*GPUHour, a.spentOn(key, noon.Add(time.Hour)))
	a.Void("ns/x")
	same(t, "spent by one that never was", Spend(0), a.spentOn(key, noon.Add(time.Hour)))
}

func TestNextWindow(t *testing.T) {
	a := accountsOf(of("b", "org:a", rqv1.Envelope{Name: "x", Concurrency: 1, Start: after(3 * time.Hour),
		End: after(5 * time.Hour)},
		rqv1.Envelope{Name: "y", Concurrency: 1, Start: after(-time.Hour), End: after(4 * time.Hour)}))
	next, ok := a.NextWindow(noon)
	if !ok || !next.Equal(noon.Add(3*time.Hour)) {
		t.Errorf("next window edge %v, %v", next, ok)
	}
	if next, ok = a.NextWindow(noon.Add(5 * time.Hour)); ok {
		t.Errorf("an edge after the last: %v", next)
	}
}

func TestCoverDoesNotDependOnOrder(t *testing.T) {
	budgets := []*rqv1.Budget{flat("x", "org:a", 3), flat("y", "org:a", 5), flat("z", "org:b", 2), flat("w", "org:c", 2),
		flat("org", "org", 4),
		under(flat("p", "org:d", 4), "org", "org:c")}
	var want []string
	for seed := range int64(20) {
		rand.New(rand.NewSource(seed)).Shuffle(len(budgets), func(i, j int) {
			budgets[i], budgets[j] = budgets[j],
				budgets[i]
		})
		got := start(t, accountsOf(budgets...), "r", Ask{Owner: "org:a", Flavor: "H100", GPUsPerPod: 1}, 17, noon)
		if want == nil {
			want = got
		}
		same(t, "payers after another order of Budgets", want, got)
	}
}
