package budget

import (
	"cmp"
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

func TestOffersAndLimits(t *testing.T) {
	active := func(b string, gpus int) Charge {
		return held(Key{b, "e"}, "org:a", rqv1.RelationOwn, rqv1.RoleActive, gpus)
	}
	a := accountsOf(
		of("future", "org:a", rqv1.Envelope{Name: "e", Concurrency: 8, Start: after(time.Hour)}),
		of("hours", "org:a", rqv1.Envelope{Name: "e", Concurrency: 8, MaxGPUHours: ptr(int64(10))}),
		flat("lowered", "org:a", 2),
		capped(flat("nested", "org:a", 8), rqv1.AggregateCap{Name: "all", Envelopes: []string{"e"},
			MaxConcurrency: ptr(int32(5)), MaxGPUHours: ptr(int64(3))}),
		of("past", "org:a", rqv1.Envelope{Name: "e", Concurrency: 8, End: after(0)}),
		flat("used", "org:a", 8),
		of("hidden", "org:b", rqv1.Envelope{Name: "e", Concurrency: 8, Sharing: rqv1.SharingNone}),
		flat("org", "org", 1),
		of("lender", "x:s", rqv1.Envelope{Name: "closed", Concurrency: 8},
			rqv1.Envelope{Name: "off", Concurrency: 8, Lending: &rqv1.Lending{To: []rqv1.ACLEntry{"*"}}},
			rqv1.Envelope{Name: "other", Concurrency: 8, Lending: lends("org:b")},
			rqv1.Envelope{Name: "small", Concurrency: 8, Lending: &rqv1.Lending{Allow: true, To: []rqv1.ACLEntry{"org:*"},
				MaxConcurrency: ptr(int32(4))}},
			rqv1.Envelope{Name: "spent", Concurrency: 8, Lending: &rqv1.Lending{Allow: true, To: []rqv1.ACLEntry{"org:a"},
				MaxGPUHours: ptr(int64(1))}}),
	)
	a.Open("ns/x", active("used", 5))
	a.Open("ns/y", active("lowered", 4))
	a.Open("ns/z", active("hours", 2)) // has spent 2 GPU-hours and is promised 2 more
	a.Open("ns/s", held(Key{"lender", "small"}, "org:z", rqv1.RelationSponsor, rqv1.RoleActive, 3))
	same(t, "offers", lines(`
0 own past/e: 0 pods, its window closed at 2026-03-01T12:00:00Z
0 own future/e: 0 pods, its window opens at 2026-03-01T13:00:00Z
0 own hours/e: 3 pods, concurrency: 6 of 8 GPUs left
0 own lowered/e: 0 pods, concurrency: 0 of 2 GPUs left
0 own nested/e: 1 pods, aggregateCaps[all].maxGPUHours: 3.00000 of 3.00000 GPU-hours left
0 own used/e: 1 pods, concurrency: 3 of 8 GPUs left
1 sibling hidden/e: 0 pods, it is not shared with the family
2 ancestor org/e: 0 pods, concurrency: 1 of 1 GPUs left
3 sponsor lender/closed: 0 pods, it does not lend to org:a, untold
3 sponsor lender/off: 0 pods, it does not lend to org:a, untold
3 sponsor lender/other: 0 pods, it does not lend to org:a, untold
3 sponsor lender/small: 0 pods, lending.maxConcurrency: 1 of 4 GPUs left
3 sponsor lender/spent: 0 pods, lending.maxGPUHours: 1.00000 of 1.00000 GPU-hours left`),
		offers(a.Cover(Ask{Owner: "org:a", Flavor: "H100", GPUsPerPod: 2, Funding: from("x:s")}, noon)))
}

func TestSponsors(t *testing.T) {
	a := accountsOf(flat("org", "org", 2), flat("own", "org:a", 2),
		of("kin", "org:b", rqv1.Envelope{Name: "hidden", Concurrency: 2, Sharing: rqv1.SharingNone, Lending: lends("org:a")},
			rqv1.Envelope{Name: "shared", Concurrency: 2}),
		of("lender", "x", rqv1.Envelope{Name: "e", Concurrency: 8, Lending: lends("org:*")}))
	ask := Ask{Owner: "org:a", Flavor: "H100", GPUsPerPod: 2, Funding: from("x", "x", "org:a", "org:b")}
	want := lines(`
0 own own/e: 1 pods, concurrency: 2 of 2 GPUs left
1 sibling kin/hidden: 0 pods, it is not shared with the family
1 sibling kin/shared: 1 pods, concurrency: 2 of 2 GPUs left
2 ancestor org/e: 1 pods, concurrency: 2 of 2 GPUs left
3 sponsor lender/e: 4 pods, concurrency: 8 of 8 GPUs left
6 sponsor kin/hidden: 1 pods, concurrency: 2 of 2 GPUs left`)
	same(t, "offers, each envelope once", want, offers(a.Cover(ask, noon)))
	ask.Funding.AllowBorrow = false
	same(t, "offers without allowBorrow", want[:4], offers(a.Cover(ask, noon)))
}

// TestSponsorsThatDoNotLend offers the same of a sponsor that has no Budget, and of one that lends to others, and no
// window of an envelope that would not pay once it were open.
func TestSponsorsThatDoNotLend(t *testing.T) {
	later := func(e rqv1.Envelope) rqv1.Envelope {
		e.Name, e.Concurrency, e.Start = cmp.Or(e.Name, "later"), 8, after(time.Hour)
		return e
	}
	a := accountsOf(of("kin", "org:b", later(rqv1.Envelope{Sharing: rqv1.SharingNone})), flat("org", "org", 1),
		of("lender", "x", later(rqv1.Envelope{Lending: lends("org:b")}), later(rqv1.Envelope{Name: "none"})),
		of("willing", "y", later(rqv1.Envelope{Lending: lends("org:a")}), later(rqv1.Envelope{Name: "none"})))
	c := a.Cover(Ask{Owner: "org:a", Flavor: "H100", GPUsPerPod: 2, Funding: from("x", "y", "z", "org:a", "org:b")}, noon)
	same(t, "offers", lines(`
1 sibling kin/later: 0 pods, it is not shared with the family
2 ancestor org/e: 0 pods, concurrency: 1 of 1 GPUs left
3 sponsor lender/later: 0 pods, it does not lend to org:a, untold
3 sponsor lender/none: 0 pods, it does not lend to org:a, untold
3 sponsor /: 0 pods, it does not lend to org:a
4 sponsor willing/later: 0 pods, its window opens at 2026-03-01T13:00:00Z
4 sponsor willing/none: 0 pods, it does not lend to org:a, untold
5 sponsor /: 0 pods, it does not lend to org:a
7 sponsor kin/later: 0 pods, it does not lend to org:a, untold
7 sponsor /: 0 pods, it does not lend to org:a`), offers(c))
	for _, o := range c.Offers {
		if !o.Opens.IsZero() && o.Key.Budget != "willing" {
			t.Errorf("%s is waited for, which would not pay", o.Key)
		}
	}
}

func TestAnOwnEnvelopeIsNotLentToItsOwner(t *testing.T) {
	a := accountsOf(of("own", "org:a", rqv1.Envelope{Name: "e", Concurrency: 2, Sharing: rqv1.SharingNone,
		Lending: lends("*")}))
	ask := Ask{Owner: "org:a", Flavor: "H100", GPUsPerPod: 1, Funding: from("org:a")}
	same(t, "payable", 2, a.Cover(ask, noon).Payable())
}

// TestBorrowLimit bounds what a Run holds from all its sponsors at any time (R5).
func TestBorrowLimit(t *testing.T) {
	lender := func(name string, owner rqv1.Owner) *rqv1.Budget {
		return of(name, owner, rqv1.Envelope{Name: "e", Concurrency: 32, Lending: lends("*")})
	}
	a := accountsOf(flat("own", "org:a", 8), lender("s1", "x:1"), lender("s2", "x:2"))
	ask := Ask{Owner: "org:a", Flavor: "H100", GPUsPerPod: 4, Funding: from("x:1", "x:2"), Run: "r"}
	ask.Funding.MaxBorrowGPUs = ptr(int32(38))
	c := a.Cover(ask, noon)
	same(t, "payable", 8+36, c.Payable())
	limit, alone := c.BorrowLimit(72)
	same(t, "the limit that keeps 72 from being paid for", []any{int64(38), true}, []any{limit.Max, alone})
	_, alone = c.BorrowLimit(73)
	same(t, "whether it is all that keeps 73 from being paid for", false, alone)
	same(t, "payers", []string{"own/e 8 (own)", "s1/e 32 (sponsor)", "s2/e 4 (sponsor)"}, start(t, a, "r", ask, 11, noon))
	same(t, "payable when all is borrowed", 0, a.Cover(ask, noon).Payable())
	ask.Run = "other"
	same(t, "payable for another Run", 28, a.Cover(ask, noon).Payable())
	a.Close("ns/r-010", noon)
	ask.Run = "r"
	same(t, "payable after giving one back", 4, a.Cover(ask, noon).Payable())
}

func TestAggregateCaps(t *testing.T) {
	envelopes := []rqv1.Envelope{{Name: "a", Concurrency: 8}, {Name: "b", Concurrency: 8}, {Name: "c", Concurrency: 8}}
	for _, tc := range []struct {
		name string
		caps []rqv1.AggregateCap
		want int
	}{
		{"none", nil, 24},
		{"over two", []rqv1.AggregateCap{{Name: "x", Envelopes: []string{"a", "b"}, MaxConcurrency: ptr(int32(9))}}, 8 + 8},
		{"nested", []rqv1.AggregateCap{{Name: "x", Envelopes: []string{"a", "b"}, MaxConcurrency: ptr(int32(4))},
			{Name: "y", Envelopes: []string{"a", "b", "c"}, MaxConcurrency: ptr(int32(10))}}, 10},
		{"crossing, best without the one in the middle",
			[]rqv1.AggregateCap{{Name: "x", Envelopes: []string{"a", "b"}, MaxConcurrency: ptr(int32(4))},
				{Name: "y", Envelopes: []string{"b", "c"}, MaxConcurrency: ptr(int32(4))}}, 8},
		{"crossing, best without the first",
			[]rqv1.AggregateCap{{Name: "x", Envelopes: []string{"a", "b"}, MaxConcurrency: ptr(int32(8))},
				{Name: "y", Envelopes: []string{"a", "c"}, MaxConcurrency: ptr(int32(8))}}, 16},
		{"hours", []rqv1.AggregateCap{{Name: "x", Envelopes: []string{"b", "c"}, MaxGPUHours: ptr(int64(5))}}, 8 + 4},
		{"an envelope that is gone",
			[]rqv1.AggregateCap{{Name: "x", Envelopes: []string{"a", "gone"}, MaxConcurrency: ptr(int32(6))}}, 4 + 16},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := accountsOf(capped(of("b", "o", envelopes...), tc.caps...))
			a.Open("ns/gone", held(Key{"b", "gone"}, "o", rqv1.RelationOwn, rqv1.RoleActive, 2))
			same(t, "payable", tc.want, a.Cover(Ask{Owner: "o", Flavor: "H100", GPUsPerPod: 2}, noon).Payable())
		})
	}
}
