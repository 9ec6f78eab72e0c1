package budget

import rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"

// beginnings are the open charges of an account, added up by the second from which they accrue. A sum that grows is
// short of what begins after the instant at which it is read: a clock may have been fast when a Lease was opened, and
// it gives nothing back.
type beginnings struct {
	at map[int64]*beginning
	// latest is no earlier than any of them, so that none need be looked at while the clock is where it should be.
	latest int64
}

type beginning struct {
	leases int
	weight [holders][uses]int64
	held   int64
}

// add counts a charge that accrues from an instant on, or with -1 counts it no more.
func (b *beginnings) add(c *Charge, unix, by int64) {
	if b.at == nil {
		b.at = map[int64]*beginning{}
	}
	x := b.at[unix]
	if x == nil {
		x = &beginning{}
		b.at[unix] = x
		b.latest = max(b.latest, unix)
	}
	x.leases += int(by)
	x.weight[holderOf(c.Relation)][useOf(c.Role)] += by * c.weight()
	if c.Role == rqv1.RoleBorrowed {
		x.held += by * int64(c.GPUs) * int64(FullRate)
	}
	if x.leases == 0 {
		delete(b.at, unix)
	}
}

// missing returns what sums that are read at an instant lack for what begins later.
func (b *beginnings) missing(unix int64) sums {
	var out sums
	if b.latest <= unix {
		return out
	}
	b.latest = 0
	for from, x := range b.at {
		b.latest = max(b.latest, from)
		if from <= unix {
			continue
		}
		for t := range x.weight {
			for p, weight := range x.weight[t] {
				out.spent[t][p] += Spend(weight * (from - unix))
			}
		}
		out.held += Spend(x.held * (from - unix))
	}
	return out
}
