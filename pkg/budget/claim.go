package budget

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"time"
)

// claim is the part of a charge that overdraft is found by. There may be many for one Budget: it is no more than that.
type claim struct {
	lease  string
	age    time.Time
	gpus   int
	of     *wallet
	holder holder
	use    use
}

// compare is negative for the older of two claims.
func (c *claim) compare(o *claim) int {
	return cmp.Or(c.age.Compare(o.age), strings.Compare(c.lease, o.lease))
}

// limits are what allows the claim.
func (c *claim) limits() []*balance {
	if c.holder == holderBorrower {
		return c.of.lent
	}
	return c.of.balances
}

// take lets the claim have what is left under every limit over it, and returns how much of it is overdraft.
func (c *claim) take() (over int) {
	allowed := c.gpus
	for _, b := range c.limits() {
		allowed = min(allowed, b.left)
	}
	for _, b := range c.limits() {
		b.left -= allowed
	}
	return c.gpus - allowed
}

// claims are a heap, with the youngest on top.
type claims []claim

func (h claims) Len() int           { return len(h) }
func (h claims) Less(i, j int) bool { return h[i].compare(&h[j]) > 0 }
func (h claims) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h claims) Push(any)           {}
func (h claims) Pop() any           { return nil }

// youngest returns, the oldest first, the youngest claims that are together as many GPUs as each limit is exceeded by:
// all others have what they hold, and are taken off. Where limits are exceeded by little these are few of many.
func (h claims) youngest(wallets []*wallet) claims {
	exceeded := h.ask(wallets)
	h = slices.DeleteFunc(h, func(c claim) bool {
		return !slices.ContainsFunc(c.limits(), (*balance).exceeded)
	})
	heap.Init(h)
	rest := h
	for exceeded > 0 && len(rest) > 0 {
		last := len(rest) - 1
		rest[0], rest[last] = rest[last], rest[0]
		for _, b := range rest[last].limits() {
			was := b.exceeded()
			b.asked -= rest[last].gpus
			if was && !b.exceeded() {
				exceeded--
			}
		}
		rest = rest[:last]
		if last > 0 {
			heap.Fix(rest, 0)
		}
	}
	for _, w := range wallets {
		for _, b := range w.lent {
			b.left, b.asked = b.left-b.asked, 0
		}
	}
	return h[len(rest):]
}

// ask adds up what claims ask of limits, and returns how many of these are exceeded.
func (h claims) ask(wallets []*wallet) (exceeded int) {
	for i := range h {
		for _, b := range h[i].limits() {
			b.asked += h[i].gpus
		}
	}
	seen := map[*balance]bool{}
	for _, w := range wallets {
		for _, b := range w.lent {
			if b.exceeded() && !seen[b] {
				seen[b], exceeded = true, exceeded+1
			}
		}
	}
	return exceeded
}
