package budget

import (
	"fmt"
	"maps"
	"testing"

	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// exchanging is a Run of which each Lease is paid by its owner or by one of two sponsors, on nodes that not all of them
// reach.
type exchanging struct {
	*Accounts
	leases []string
}

func exchangingAny(t *rapid.T, everywhere bool) *exchanging {
	regions := []string{"east", "west"}
	within := func(e rqv1.Envelope, name string) rqv1.Envelope {
		if !everywhere && rapid.Bool().Draw(t, name+" pays in one region alone") {
			e.Selector = map[string]string{"region": rapid.SampledFrom(regions).Draw(t, "region of "+name)}
		}
		return e
	}
	x := &exchanging{Accounts: accountsOf(
		of("own", "org:a", within(rqv1.Envelope{Name: "e", Concurrency: 64}, "own")),
		of("s", "org:s", within(rqv1.Envelope{Name: "e", Concurrency: 64, Lending: lends("*")}, "s")),
		of("t", "org:t", within(rqv1.Envelope{Name: "e", Concurrency: 64, Lending: lends("*")}, "t")),
	)}
	for i := range rapid.IntRange(0, 7).Draw(t, "Leases") {
		name := fmt.Sprint("lease", i)
		c := Charge{Owner: "org:a", Run: "run", Role: rqv1.RoleActive, GPUs: 8, Rate: FullRate, Start: noon, Flavor: "H100",
			Node: fmt.Sprint("node", i)}
		c.Payer.Budget = rapid.SampledFrom([]string{"own", "s", "t"}).Draw(t, "payer")
		c.Payer.Envelope, c.Relation = "e", rqv1.RelationSponsor
		if c.Payer.Budget == "own" {
			c.Relation = rqv1.RelationOwn
		}
		x.SetNode(c.Node, "H100", map[string]string{"region": rapid.SampledFrom(regions).Draw(t, "region")})
		x.Open(name, c)
		x.leases = append(x.leases, name)
	}
	return x
}

// exchange carries the exchanges out, and asserts that no payer pays for more, or where it does not reach.
func (x *exchanging) exchange(t *rapid.T, pairs [][2]string) {
	before := maps.Clone(x.Usage())
	seen := map[string]bool{}
	for _, pair := range pairs {
		one, other := x.charges[pair[0]], x.charges[pair[1]]
		if seen[pair[0]] || seen[pair[1]] || one.Relation != rqv1.RelationSponsor || other.Relation == rqv1.RelationSponsor {
			t.Fatalf("%v exchange payers: %+v, %+v", pair, one, other)
		}
		seen[pair[0]], seen[pair[1]] = true, true
		one.Payer, other.Payer, one.Relation, other.Relation = other.Payer, one.Payer, other.Relation, one.Relation
		for _, c := range []Charge{one, other} {
			if e, _ := x.find(c.Payer); !x.nodes.covered(e, &c) {
				t.Fatalf("R3: %s pays on %s", c.Payer, c.Node)
			}
		}
		x.Open(pair[0], one)
		x.Open(pair[1], other)
	}
	if after := x.Usage(); !maps.Equal(before, after) {
		t.Fatalf("they paid for %v, and pay for %v", before, after)
	}
}

// borrowed returns which Leases sponsors pay for.
func (x *exchanging) borrowed() []bool {
	out := make([]bool, len(x.leases))
	for i, lease := range x.leases {
		out[i] = x.charges[lease].Relation == rqv1.RelationSponsor
	}
	return out
}

// misplacedIn counts the Leases that have another kind of payer than in the order of R6: each of them needs another.
func misplacedIn(borrowed []bool) (n int) {
	sum := 0
	for _, b := range borrowed {
		if b {
			sum++
		}
	}
	for i, b := range borrowed {
		if b != (i >= len(borrowed)-sum) {
			n++
		}
	}
	return n
}

// TestExchangesAreInOrder has what sponsors pay for be the last, with as few exchanges as that takes, where all payers
// reach all nodes.
func TestExchangesAreInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := exchangingAny(t, true)
		least := misplacedIn(x.borrowed())
		pairs := x.Exchanges(x.leases)
		if 2*len(pairs) != least {
			t.Fatalf("%d pairs exchange payers, and %d Leases have to: %v", len(pairs), least, x.borrowed())
		}
		x.exchange(t, pairs)
		if n := misplacedIn(x.borrowed()); n > 0 {
			t.Fatalf("%d are still misplaced: %v", n, x.borrowed())
		}
	})
}

// TestExchangesReach keeps every payer to the nodes that it pays on, and comes to an end at which no two are left that
// could exchange.
func TestExchangesReach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := exchangingAny(t, false)
		for range len(x.leases) + 1 {
			pairs := x.Exchanges(x.leases)
			if len(pairs) == 0 {
				break
			}
			x.exchange(t, pairs)
		}
		for i, low := range x.leases {
			for _, high := range x.leases[i+1:] {
				a, b := x.charges[low], x.charges[high]
				if a.Relation != rqv1.RelationSponsor || b.Relation == rqv1.RelationSponsor {
					continue
				}
				one, _ := x.find(a.Payer)
				other, _ := x.find(b.Payer)
				if x.nodes.covered(one, &b) && x.nodes.covered(other, &a) {
					t.Fatalf("%s and %s could exchange payers: %+v, %+v", low, high, a, b)
				}
			}
		}
	})
}

// TestNoExchange leaves payers as they are where the two Leases are not alike, or one of the payers is gone. It lends
// nothing: who lends no more is given back first all the same.
func TestNoExchange(t *testing.T) {
	for name, c := range map[string]struct {
		change func(x *Accounts, low, high *Charge)
		want   int
	}{
		"as they are":     {func(*Accounts, *Charge, *Charge) {}, 1},
		"an ancestor's":   {func(_ *Accounts, low, _ *Charge) { low.Relation = rqv1.RelationAncestor }, 1},
		"a sibling's":     {func(_ *Accounts, low, _ *Charge) { low.Relation = rqv1.RelationSibling }, 1},
		"both are others": {func(_ *Accounts, _, high *Charge) { high.Relation = rqv1.RelationAncestor }, 1},
		"both are sponsors": {func(_ *Accounts, _, high *Charge) {
			high.Relation = rqv1.RelationSponsor
		}, 0},
		"another size": {func(_ *Accounts, low, _ *Charge) { low.GPUs = 4 }, 0},
		"another rate": {func(_ *Accounts, low, _ *Charge) { low.Rate = 500 }, 0},
		"another role": {func(_ *Accounts, low, _ *Charge) { low.Role = rqv1.RoleSpare }, 0},
		"another end":  {func(_ *Accounts, low, _ *Charge) { low.Until = noon.Add(1) }, 0},
		"it does not lend any more": {func(x *Accounts, _, _ *Charge) {
			x.SetBudget(of("s", "org:s", rqv1.Envelope{Name: "e", Concurrency: 8}))
		}, 1},
		"its window is over": {func(x *Accounts, _, _ *Charge) {
			x.SetBudget(of("s", "org:s", rqv1.Envelope{Name: "e", Concurrency: 8, Lending: lends("*"), End: after(0)}))
		}, 1},
		"the owner's is": {func(x *Accounts, _, _ *Charge) {
			x.SetBudget(of("own", "org:a", rqv1.Envelope{Name: "e", Concurrency: 8, End: after(0)}))
		}, 1},
		"the Budget is gone": {func(x *Accounts, _, _ *Charge) { x.DeleteBudget("s") }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			x := accountsOf(flat("own", "org:a", 8),
				of("s", "org:s", rqv1.Envelope{Name: "e", Concurrency: 8, Lending: lends("*")}))
			low := Charge{Payer: Key{"s", "e"}, Owner: "org:a", Run: "run", Relation: rqv1.RelationSponsor,
				Role: rqv1.RoleActive, GPUs: 8, Rate: FullRate, Start: noon}
			high := low
			high.Payer, high.Relation = Key{"own", "e"}, rqv1.RelationOwn
			c.change(x, &low, &high)
			x.Open("low", low)
			x.Open("high", high)
			if pairs := x.Exchanges([]string{"low", "high"}); len(pairs) != c.want {
				t.Errorf("%v exchange payers, want %d", pairs, c.want)
			}
		})
	}
}
