package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// books is all that a look can see of a fleet and its Budgets.
type books struct {
	Free, Held map[string]int
	CPU        map[string]int // pods that it would do for
	Open       map[string]budget.Charge
	Used       map[budget.Key]int
	Spent      map[budget.Key]budget.Spend
}

// cpu are CPUs in thousandths, beside GPUs.
func cpu(n int64) *topology.Amounts { return topology.NewAmounts(map[string]int64{"cpu": n}) }

func booksOf(f *topology.Fleet, a *budget.Accounts, nodes, leases []string) books {
	out := books{map[string]int{}, map[string]int{}, map[string]int{},
		map[string]budget.Charge{}, a.Usage(), a.Spent(noon.Add(time.Hour))}
	for _, node := range nodes {
		out.Free[node], out.Held[node] = f.Free(node), f.Held(node)
		out.CPU[node] = f.RoomBeside(node, cpu(1), 1000)
	}
	for _, lease := range leases {
		if c, ok := a.Charge(lease); ok {
			out.Open[lease] = c
		}
	}
	return out
}

// Whatever a Fork did, in whatever order, reverting to a mark brings back what was there at that mark.
func TestAForkIsReverted(t *testing.T) {
	nodes, leases := []string{"a1", "a2", "b1", "nowhere"}, []string{"a", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		f, a := fleet(), accounts(west(64), east(32))
		chargeOf := func() budget.Charge {
			envelope := rapid.SampledFrom([]string{"west", "east"}).Draw(t, "payer")
			return budget.Charge{Payer: budget.Key{Budget: "b", Envelope: envelope}, Owner: "org:a", Run: "run",
				Role: rqv1.RoleActive, GPUs: rapid.IntRange(1, 8).Draw(t, "GPUs"),
				Rate: budget.FullRate, Start: noon.Add(-time.Hour), Flavor: "H100"}
		}
		a.Open("a", chargeOf())
		fork := NewFork(f, a)
		marks, before := []int{fork.Mark()}, []books{booksOf(f, a, nodes, leases)}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			beside := cpu(rapid.Int64Range(0, 3).Draw(t, "CPU beside"))
			node := rapid.SampledFrom(nodes).Draw(t, "node")
			lease := rapid.SampledFrom(leases).Draw(t, "Lease")
			switch rapid.SampledFrom([]string{"take", "give", "open", "void", "close", "revert"}).Draw(t, "step") {
			case "take":
				fork.Take(node, rapid.IntRange(0, 4).Draw(t, "taken"), beside)
			case "give":
				fork.Give(node, min(f.Held(node), rapid.IntRange(0, 4).Draw(t, "given")), beside)
			case "open":
				if c := chargeOf(); !a.IsPast(lease, budget.Key{Budget: "b", Envelope: "west"}) &&
					!a.IsPast(lease, budget.Key{Budget: "b", Envelope: "east"}) {
					fork.Open(lease, c)
				}
			case "void":
				fork.Void(lease)
			case "close":
				fork.Close(lease, noon)
			case "revert":
				to := rapid.IntRange(0, len(marks)-1).Draw(t, "mark")
				fork.RevertTo(marks[to])
				if diff := cmp.Diff(before[to], booksOf(f, a, nodes, leases)); diff != "" {
					t.Fatal(fmt.Sprintf("reverted to mark %d (-then +now):\n", to), diff)
				}
				marks, before = marks[:to+1], before[:to+1]
			}
			marks, before = append(marks, fork.Mark()), append(before, booksOf(f, a, nodes, leases))
		}
		fork.Revert()
		if diff := cmp.Diff(before[0], booksOf(f, a, nodes, leases)); diff != "" {
			t.Fatal("all reverted (-before +after):\n", diff)
		}
	})
}
