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

// endedBy returns the closed Leases that ended by an instant, and forgets their order. Some may have been taken back
// since they were ordered, or be there twice: those are not closed any more, or not again.
func (a *account) endedBy(unix int64) []string {
	var out []string
	seen := map[string]bool{}
	for len(a.byEnd) > 0 && a.byEnd[0].ended <= unix {
		x := heap.Pop(&a.byEnd).(aged)
		if p, closed := a.closed[x.lease]; closed && p.ended == x.ended && !seen[x.lease] {
			seen[x.lease] = true
			out = append(out, x.lease)
		}
	}
	return out
}
