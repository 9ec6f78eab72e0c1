package budget

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// exchanging is a Run of which each Lease is paid by its owner, its family or a sponsor, on nodes that not all of them
// reach.
type exchanging struct {
	*Accounts
	leases []string
}

// payersOf are those who may pay for Leases of org:a:b, and how they are related to it.
var payersOf = []struct {
	name, owner string
	relation    rqv1.Relation
}{
	{"own", "org:a:b", rqv1.RelationOwn},
	{"sibling", "org:a:c", rqv1.RelationSibling},
	{"parent", "org:a", rqv1.RelationAncestor},
	{"sponsor", "org:s", rqv1.RelationSponsor},
}

// exchangingAny draws such a Run, of up to so many kinds of payers.
func exchangingAny(t *rapid.T, everywhere bool, kinds int) *exchanging {
	regions := []string{"east", "west"}
	var budgets []*rqv1.Budget
	for _, p := range payersOf {
		e := rqv1.Envelope{Name: "e", Concurrency: 64, Lending: lends("*")}
		if !everywhere && rapid.Bool().Draw(t, p.name+" pays in one region alone") {
			e.Selector = map[string]string{"region": rapid.SampledFrom(regions).Draw(t, "region of "+p.name)}
		}
		budgets = append(budgets, of(p.name, rqv1.Owner(p.owner), e))
	}
	x := &exchanging{Accounts: accountsOf(budgets...)}
	among := rapid.Permutation(payersOf).Draw(t, "payers")[:kinds]
	for i := range rapid.IntRange(0, 7).Draw(t, "Leases") {
		name, payer := fmt.Sprint("lease", i), rapid.SampledFrom(among).Draw(t, "payer")
		c := Charge{Payer: Key{payer.name, "e"}, Relation: payer.relation, Owner: "org:a:b", Run: "run",
			Role: rqv1.RoleActive, GPUs: 8, Rate: FullRate, Start: noon, Flavor: "H100", Node: fmt.Sprint("node", i)}
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
		if seen[pair[0]] || seen[pair[1]] || one.Relation.Step() <= other.Relation.Step() {
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

// steps returns who pays for each Lease, as a place in the order of R2.
func (x *exchanging) steps() []int {
	out := make([]int, len(x.leases))
	for i, lease := range x.leases {
		c := x.charges[lease]
		out[i] = c.Relation.Step()
	}
	return out
}

// misplacedIn counts the Leases that have another kind of payer than in the order of R6: each of them needs another.
func misplacedIn(steps []int) (n int) {
	for i, step := range slices.Sorted(slices.Values(steps)) {
		if steps[i] != step {
			n++
		}
	}
	return n
}

// TestExchangesAreInOrder has what others pay for be the last where all payers reach all nodes; of two kinds of payer
// with as few exchanges as that takes.
func TestExchangesAreInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kinds := rapid.IntRange(2, 4).Draw(t, "kinds")
		x := exchangingAny(t, true, kinds)
		before, exchanges := x.steps(), 0
		for pairs := x.Exchanges(x.leases); len(pairs) > 0; pairs = x.Exchanges(x.leases) {
			x.exchange(t, pairs)
			exchanges += len(pairs)
		}
		if least := misplacedIn(before); kinds == 2 && 2*exchanges != least {
			t.Fatalf("%d pairs exchange payers, and %d Leases have to: %v", exchanges, least, before)
		}
		if n := misplacedIn(x.steps()); n > 0 {
			t.Fatalf("%d are still misplaced: %v, before %v", n, x.steps(), before)
		}
	})
}

// TestExchangesReach keeps every payer to the nodes that it pays on, and comes to an end at which no two are left that
// could exchange.
func TestExchangesReach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := exchangingAny(t, false, len(payersOf))
		for pairs := x.Exchanges(x.leases); len(pairs) > 0; pairs = x.Exchanges(x.leases) {
			x.exchange(t, pairs)
		}
		for i, low := range x.leases {
			for _, high := range x.leases[i+1:] {
				a, b := x.charges[low], x.charges[high]
				if a.Relation.Step() <= b.Relation.Step() {
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
		"another end":  {func(_ *Accounts, low, _ *Charge) { low.Until = noon.Add(1) }, 1},
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

// BenchmarkExchanges looks at a Run of 6,000 Leases: those that others pay for lie where its owner pays for none.
func BenchmarkExchanges(b *testing.B) {
	within := func(region string) rqv1.Envelope {
		return rqv1.Envelope{Name: "e", Concurrency: 64000, Selector: map[string]string{"region": region}}
	}
	x := accountsOf(of("own", "org:a:b", within("west")), of("sibling", "org:a:c", within("east")))
	var leases []string
	for i := range 6000 {
		name, node := fmt.Sprint("lease", i), fmt.Sprint("node", i)
		payer, region := payersOf[0], "west"
		if i/1000 == 3 {
			payer, region = payersOf[1], "east"
		}
		x.SetNode(node, "H100", map[string]string{"region": region})
		x.Open(name, Charge{Payer: Key{payer.name, "e"}, Relation: payer.relation, Owner: "org:a:b", Run: "run",
			Role: rqv1.RoleActive, GPUs: 8, Rate: FullRate, Start: noon, Flavor: "H100", Node: node})
		leases = append(leases, name)
	}
	for b.Loop() {
		if pairs := x.Exchanges(leases); len(pairs) > 0 {
			b.Fatal(pairs)
		}
	}
}
