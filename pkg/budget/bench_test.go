package budget

import (
	"fmt"
	"math"
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// fleet has 500 Budgets of 10 envelopes, capped and bounded in GPU-hours; 20 of their owners are one family.
func fleet(closed, open int) *Accounts {
	a := NewAccounts(rates)
	for i := range 500 {
		owner := rqv1.Owner(fmt.Sprintf("org%d:team%d", i/20, i%20))
		b := of(fmt.Sprintf("b%03d", i), owner)
		var names []string
		for j := range 10 {
			e := rqv1.Envelope{Name: fmt.Sprintf("e%d", j), Flavor: "H100", Concurrency: 64, MaxGPUHours: ptr(int64(1e9)),
				Lending: lends("org*")}
			if j%2 == 0 {
				e.Selector = map[string]string{"region": "west"}
			}
			b.Spec.Envelopes, names = append(b.Spec.Envelopes, e), append(names, e.Name)
		}
		capped(b, rqv1.AggregateCap{Name: "all", Envelopes: names, MaxConcurrency: ptr(int32(600)),
			MaxGPUHours: ptr(int64(1e9))})
		a.SetBudget(under(b, rqv1.Owner(fmt.Sprintf("org%d", i/20))))
	}
	charge := func(i int) Charge {
		c := held(Key{fmt.Sprintf("b%03d", i%500), fmt.Sprintf("e%d", i/500%10)}, "org0:team0", rqv1.RelationSponsor,
			rqv1.RoleActive, 1)
		c.Run, c.Start = fmt.Sprint(i), noon.Add(-time.Duration(i)*time.Second)
		if i%2 == 0 {
			c.Until = noon.Add(time.Duration(i) * time.Second)
		}
		return c
	}
	for i := range closed {
		a.Past(fmt.Sprintf("ns/closed-%d", i), charge(i), noon)
	}
	for i := range open {
		a.Open(fmt.Sprintf("ns/open-%d", i), charge(i))
	}
	return a
}

// BenchmarkCover finds who pays for a gang of 1,000 pods on nodes of two classes. It is to take less than 5 ms, and not
// to grow with what is closed.
func BenchmarkCover(b *testing.B) {
	for _, size := range []struct{ closed, open int }{{0, 0}, {100_000, 0}, {0, 10_000}, {100_000, 10_000}} {
		b.Run(fmt.Sprintf("closed=%d/open=%d", size.closed, size.open), func(b *testing.B) {
			a := fleet(size.closed, size.open)
			ask := Ask{Owner: "org0:team7", Flavor: "H100", GPUsPerPod: 8, Run: "run", Funding: from("org1:team1", "org2:team2"),
				MaxDuration: 24 * time.Hour}
			classes, spare := make([]int, 1000), make([]bool, 1000)
			b.ReportAllocs()
			for b.Loop() {
				c := a.Cover(ask, noon)
				west, east := c.Class(map[string]string{"region": "west"}), c.Class(map[string]string{"region": "east"})
				for i := range classes {
					if classes[i] = west; i%2 == 1 {
						classes[i] = east
					}
				}
				if c.Assign(classes, spare) == nil {
					b.Fatal("not covered")
				}
			}
		})
	}
}

// BenchmarkCovers asks what pack asks, for demand that cannot be met under the limits of many offers.
func BenchmarkCovers(b *testing.B) {
	c := fleet(0, 0).Cover(Ask{Owner: "org0:team7", Flavor: "H100", GPUsPerPod: 8, Run: "run"}, noon)
	demand := make([]int, 2)
	demand[c.Class(map[string]string{"region": "west"})], demand[c.Class(map[string]string{"region": "east"})] = 100, 5000
	b.ReportAllocs()
	for b.Loop() {
		if c.Covers(demand) {
			b.Fatal("covered")
		}
	}
}

// BenchmarkFamily follows the edit of a Budget.
func BenchmarkFamily(b *testing.B) {
	a := fleet(0, 0)
	edited := a.Budget("b007")
	b.ReportAllocs()
	for b.Loop() {
		a.SetBudget(edited)
		a.related().steps("org0:team7")
	}
}

// BenchmarkRefresh goes through 10,000 open Leases, all within limits, or with one Budget in overdraft.
func BenchmarkRefresh(b *testing.B) {
	for _, overdrawn := range []bool{false, true} {
		b.Run(fmt.Sprintf("overdrawn=%v", overdrawn), func(b *testing.B) {
			a := fleet(100_000, 10_000)
			if overdrawn {
				for i := range 500 {
					a.Budget(fmt.Sprintf("b%03d", i)).Spec.Envelopes[3].Concurrency = 1
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				a.fresh.none()
				a.Refresh(noon)
			}
		})
	}
}

// BenchmarkSettle looks, as once a minute, for closed Leases that are old enough, of which there are none.
func BenchmarkSettle(b *testing.B) {
	for _, closed := range []int{1000, 1_000_000} {
		b.Run(fmt.Sprintf("closed=%d", closed), func(b *testing.B) {
			a := fleet(closed, 0)
			for b.Loop() {
				for _, payer := range a.Payers() {
					a.Settle(payer, noon.Add(-time.Hour))
				}
			}
		})
	}
}

// BenchmarkBeyond is what a ledger with more closed Leases than its limit costs each minute under the lock: finding how
// many each Budget keeps, and settling a portion of one Budget's. Neither is to grow with what is closed.
func BenchmarkBeyond(b *testing.B) {
	for _, closed := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprintf("count/closed=%d", closed), func(b *testing.B) {
			a := fleet(closed, 0)
			for b.Loop() {
				if a.Kept(a.Closed()-1) == math.MaxInt {
					b.Fatal("nobody has too many")
				}
			}
		})
		b.Run(fmt.Sprintf("portion/closed=%d", closed), func(b *testing.B) {
			a := accountsOf(of("b", "o", rqv1.Envelope{Name: "e", Concurrency: 1}))
			c := held(Key{"b", "e"}, "o", rqv1.RelationOwn, rqv1.RoleActive, 1)
			add := func(i int) {
				c.Start = noon.Add(-time.Hour)
				a.Past(fmt.Sprint("ns/", i), c, noon.Add(time.Duration(i)*time.Second))
			}
			for i := range closed {
				add(i)
			}
			for next := closed; b.Loop(); {
				folded := len(a.SettleBeyond("b", closed-portion, noon.Add(time.Duration(next)*time.Second)))
				if folded != portion {
					b.Fatalf("%d of %d go", folded, portion)
				}
				b.StopTimer()
				for range folded {
					add(next)
					next++
				}
				b.StartTimer()
			}
		})
	}
}

// BenchmarkUnchanged looks, as every second, for overdraft that has changed, of which there is none.
func BenchmarkUnchanged(b *testing.B) {
	a := fleet(100_000, 10_000)
	for b.Loop() {
		a.Refresh(noon)
	}
}

// BenchmarkLeave is told of a namespace that goes, with one closed Lease, beside many that stay.
func BenchmarkLeave(b *testing.B) {
	for _, closed := range []int{1000, 1_000_000} {
		b.Run(fmt.Sprintf("closed=%d", closed), func(b *testing.B) {
			a := fleet(closed, 0)
			a.Past("gone/x", held(Key{"b001", "e1"}, "org0:team0", rqv1.RelationOwn, rqv1.RoleActive, 1), noon)
			for b.Loop() {
				a.Leave("gone")
				a.Left("gone")
			}
		})
	}
}

// BenchmarkPast records a Lease that is closed: what it allocates is what is kept of it until it is settled.
func BenchmarkPast(b *testing.B) {
	a := fleet(0, 0)
	c := held(Key{"b001", "e1"}, "org0:team0", rqv1.RelationSponsor, rqv1.RoleActive, 1)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		a.Past(fmt.Sprintf("ns/closed-%d", i), c, noon)
	}
}

// BenchmarkForget has one Lease vanish beside many that are closed, as many of a namespace that is deleted do.
func BenchmarkForget(b *testing.B) {
	for _, closed := range []int{1000, 1_000_000} {
		b.Run(fmt.Sprintf("closed=%d", closed), func(b *testing.B) {
			a := fleet(closed, 0)
			c := held(Key{"b001", "e1"}, "org0:team0", rqv1.RelationSponsor, rqv1.RoleActive, 1)
			for i := 0; b.Loop(); i++ {
				lease := fmt.Sprintf("gone/%d", i)
				a.Past(lease, c, noon)
				if !a.ForgetOf(c.Payer, lease) {
					b.Fatal("it was not closed")
				}
			}
		})
	}
}

// BenchmarkPromised covers a pod at an envelope that many Leases of Runs with a maxDuration hold GPUs of.
func BenchmarkPromised(b *testing.B) {
	for _, open := range []int{100, 40_000} {
		b.Run(fmt.Sprintf("open=%d", open), func(b *testing.B) {
			a := accountsOf(of("b", "o", rqv1.Envelope{Name: "e", Concurrency: 1_000_000, MaxGPUHours: ptr(int64(1e9))}))
			for i := range open {
				c := held(Key{"b", "e"}, "o", rqv1.RelationOwn, rqv1.RoleActive, 1)
				c.Until = noon.Add(time.Duration(i/8) * time.Second) // Runs of 8 pods each
				a.Open(fmt.Sprint(i), c)
			}
			for b.Loop() {
				a.Cover(Ask{Owner: "o", Flavor: "H100", GPUsPerPod: 1}, noon)
			}
		})
	}
}

// BenchmarkRefreshStrangers goes through the Leases of owners that have no Budget, on a pool of theirs.
func BenchmarkRefreshStrangers(b *testing.B) {
	a := fleet(0, 0)
	a.SetBudget(flat("org0", "org0", 1)) // the parent of them all: the teams of org0 are their siblings
	for i := range 10_000 {
		owner := rqv1.Owner(fmt.Sprintf("org0:user%d", i%100))
		a.Open(fmt.Sprint(i), held(Key{"b001", fmt.Sprintf("e%d", i%10)}, owner, rqv1.RelationSibling, rqv1.RoleActive, 1))
	}
	for i := range 10 {
		a.Budget("b001").Spec.Envelopes[i].Concurrency = 10_000
	}
	a.Budget("b001").Spec.AggregateCaps = nil
	for b.Loop() {
		a.fresh.none()
		a.Refresh(noon)
	}
}

// BenchmarkOverdraft goes through the Leases of a Budget that holds some GPUs too many, or twice as many as it may, or
// whose GPU-hours are spent.
func BenchmarkOverdraft(b *testing.B) {
	for _, open := range []int{40_000, 400_000} {
		few := rqv1.Envelope{Name: "few", Concurrency: int32(open - 100)}
		half := rqv1.Envelope{Name: "half", Concurrency: int32(open / 2)}
		spent := rqv1.Envelope{Name: "spent", Concurrency: int32(open), MaxGPUHours: ptr(int64(1))}
		for _, e := range []rqv1.Envelope{few, half, spent} {
			b.Run(fmt.Sprintf("open=%d/%s", open, e.Name), func(b *testing.B) {
				a := accountsOf(of("b", "o", e))
				for i := range open {
					c := held(Key{"b", e.Name}, "o", rqv1.RelationOwn, rqv1.RoleActive, 1)
					c.Start = noon.Add(-time.Duration(i*7919%open) * time.Second)
					a.Open(fmt.Sprint("ns/", i), c)
				}
				for b.Loop() {
					a.fresh.none()
					a.Refresh(noon)
				}
			})
		}
	}
}
