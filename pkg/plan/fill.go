package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// Room is what shards of opportunistic Runs may use of a node: GPUs on which nothing runs (R15).
type Room struct {
	Node   string
	Labels map[string]string
	// Idle GPUs are nobody's, and those UnderSpares are held by spares that stand by.
	Idle, UnderSpares int
	// Intended says that a Reservation intends to use the node.
	Intended bool
}

// gpus is how many GPUs of the room shards may use.
func (r *Room) gpus() int { return r.Idle + r.UnderSpares }

// Fill gives as many shards of an opportunistic Run as there is room and money for a node and a payer, shards of low
// index first, and says why the next one has none; the refusal is nil when all have. GPUs under spares come first,
// since others need them last, then the emptiest nodes, which others are packed onto last, then nodes that Reservations
// intend. Shards use no concurrency, but GPU-hours at their rate (R7). It changes nothing.
func Fill(accounts *budget.Accounts, d Demand, claim Claim, shards []int, rooms []Room,
	now time.Time) ([]Assignment, *Refusal) {
	cover := shardCover(accounts, d, claim, now)
	payable := cover.Payable() / d.GPUsPerPod
	var out []Assignment
	var classes []int
	for _, room := range byNeed(rooms, d.GPUsPerPod) {
		class := cover.Class(room.Labels)
		for left := room.gpus(); class >= 0 && left >= d.GPUsPerPod &&
			len(out) < min(payable, len(shards)); left -= d.GPUsPerPod {
			out = append(out, Assignment{Part: rank.Part{Index: shards[len(out)]}, Group: d.GroupOf(shards[len(out)]),
				Node: room.Node})
			classes = append(classes, class)
		}
	}
	var payers []int
	for len(out) > 0 && payers == nil {
		payers = cover.Assign(classes, make([]bool, len(out)))
		if payers == nil {
			out, classes = out[:len(out)-1], classes[:len(out)-1] // whoever pays on these nodes cannot pay for so many
		}
	}
	for i := range out {
		offer := &cover.Offers[payers[i]]
		out[i].Payer, out[i].Relation = offer.Key, offer.Relation
	}
	switch missing := len(shards) - len(out); {
	case missing == 0:
		return out, nil
	case payable <= len(out):
		return out, ofBudget(d, cover, len(shards)*d.GPUsPerPod, payable*d.GPUsPerPod)
	default:
		return out, &Refusal{Reason: InsufficientGPUs, Owner: d.Owner, Flavor: d.Flavor,
			WantedGPUs: len(shards) * d.GPUsPerPod,
			ShortGPUs:  missing * d.GPUsPerPod, Message: "no idle GPUs fit a shard"}
	}
}

// Shards returns how many more shards of an opportunistic Run somebody could pay for.
func Shards(accounts *budget.Accounts, d Demand, claim Claim, now time.Time) int {
	return shardCover(accounts, d, claim, now).Payable() / d.GPUsPerPod
}

func shardCover(accounts *budget.Accounts, d Demand, claim Claim, now time.Time) *budget.Cover {
	return accounts.Cover(budget.Ask{
		Owner: d.Owner, Flavor: d.Flavor, GPUsPerPod: d.GPUsPerPod, Opportunistic: true, Run: claim.Run,
		Funding:     claim.Funding,
		MaxDuration: claim.lasts(now), Owed: claim.Owed,
	}, now)
}

// byNeed sorts rooms of at least some GPUs so that those which others are to use last come first.
func byNeed(rooms []Room, gpus int) []Room {
	usable := slices.DeleteFunc(slices.Clone(rooms), func(r Room) bool { return r.gpus() < gpus })
	later := func(yes bool) int {
		if yes {
			return 1
		}
		return 0
	}
	slices.SortFunc(usable, func(x, y Room) int {
		return cmp.Or(
			cmp.Compare(later(x.UnderSpares == 0), later(y.UnderSpares == 0)),
			cmp.Compare(later(x.Intended), later(y.Intended)),
			cmp.Compare(y.gpus(), x.gpus()),
			strings.Compare(x.Node, y.Node))
	})
	return usable
}

// Shard is a pod of an opportunistic Run where it runs.
type Shard struct {
	// Key tells shards of one age apart.
	Key   string
	GPUs  int
	Since time.Time
	// Leaving says that it has been told to go.
	Leaving bool
}

// Reclaim returns which shards on a node have to go so that a number of GPUs on it become free, as indexes, in order of
// key: the youngest, and no more than it takes. What shards that are leaving give up counts first. It returns all when
// they are too few.
func Reclaim(shards []Shard, gpus int) []int {
	order := make([]int, 0, len(shards))
	for i := range shards {
		if shards[i].Leaving {
			gpus -= shards[i].GPUs
		} else {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(x, y int) int {
		return cmp.Or(shards[y].Since.Compare(shards[x].Since), strings.Compare(shards[y].Key, shards[x].Key))
	})
	var out []int
	for _, i := range order {
		if gpus <= 0 {
			break
		}
		gpus -= shards[i].GPUs
		out = append(out, i)
	}
	slices.SortFunc(out, func(x, y int) int { return strings.Compare(shards[x].Key, shards[y].Key) })
	return out
}
