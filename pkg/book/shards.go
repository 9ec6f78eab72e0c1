package book

import (
	"time"

	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// waitingShards is how many shards wait of a Run that there is no room for: one, so that the API server has seen such a pod and the
// other plugins can be asked about it.
const waitingShards = 1

// allowShards says how many pods each Run of shards may have: a Run may ask for a million. Beyond those that have their places, and
// the one that waits, they are as many as there is room and money for, of older Runs first. Wanting are the Runs by age,
// and idle the nodes that have room.
func (b *Book) allowShards(wanting []*gang, idle map[string][]string, now time.Time) {
	left := map[string]int{}
	for flavor, nodes := range idle {
		for _, node := range nodes {
			left[flavor] += b.roomFor(node) - b.shardGPUs(node)
		}
	}
	for _, g := range wanting {
		flavor, gpus := g.full.Flavor, g.full.GPUsPerPod
		fits := min(left[flavor]/gpus, g.wants())
		if fits > 0 {
			fits = min(fits, plan.Shards(b.accounts, g.demand, b.claim(g, nil), now))
		}
		left[flavor] -= fits * gpus
		if more := g.active.assigned + max(waitingShards, fits); more != g.shards {
			if g.shards = more; more > g.active.within {
				b.reconcile(keyOf(g.run))
			}
		}
	}
}

// wants returns how many shards of a gang have no place yet.
func (g *gang) wants() int { return g.active.size - g.active.assigned }

// allowedShards returns how many pods a Run of shards may have; 0 for any other Run.
func (g *gang) allowedShards() int {
	if !g.opportunistic() {
		return 0
	}
	return max(g.shards, g.active.assigned+waitingShards)
}
