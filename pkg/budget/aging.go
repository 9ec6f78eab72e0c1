package budget

import "container/heap"

// aging is a heap of closed Leases by their ends: the Leases to settle are found without a look at the others.
type aging []aged

type aged struct {
	ended int64
	lease string
}

func (a aging) Len() int           { return len(a) }
func (a aging) Less(i, j int) bool { return a[i].ended < a[j].ended }
func (a aging) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *aging) Push(x any)        { *a = append(*a, x.(aged)) }

func (a *aging) Pop() any {
	last := len(*a) - 1
	x := (*a)[last]
	*a = (*a)[:last]
	return x
}

// endedBy returns the closed Leases of some envelopes that ended by an instant, the earliest first, and forgets their
// order: a number of them, with all that ended in the same second as its last. Some may have been taken back since they
// were ordered, or be there twice: those are not closed any more, or not again.
func (a *Accounts) endedBy(of []Key, unix int64, most int) []goingLease {
	var out []goingLease
	seen := map[string]bool{}
	for last := unix; ; {
		k, ended, any := a.oldest(of)
		if !any || ended > unix || len(out) >= most && ended > last {
			return out
		}
		at := a.accounts[k]
		x := heap.Pop(&at.byEnd).(aged)
		if p, closed := at.closed.of(x.lease); closed && p.ended == x.ended && !seen[x.lease] {
			seen[x.lease], last = true, x.ended
			out = append(out, goingLease{x.lease, k})
		}
	}
}

// oldest returns the envelope whose closed Lease ended first, and when; false where none has any.
func (a *Accounts) oldest(of []Key) (first Key, ended int64, any bool) {
	for _, k := range of {
		if at := a.accounts[k]; len(at.byEnd) > 0 && (!any || at.byEnd[0].ended < ended) {
			first, ended, any = k, at.byEnd[0].ended, true
		}
	}
	return first, ended, any
}
