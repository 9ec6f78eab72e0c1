// Package queueorder says which of one owner's Runs has which of their places in the queue (R44). It is pure.
package queueorder

import (
	"cmp"
	"slices"
)

// Waiting is a Run that waits, as far as its place among those of its owner that wait for the same depends on it.
type Waiting struct {
	Priority int32
	// Keeps says that it gives its place to nobody.
	Keeps bool
	// GPUs that it asks for, 0 or more.
	GPUs int
}

// Places returns which place each Run has of those that they have by age. The Runs are listed by age, the oldest
// first; so are the places.
//
// A Run exchanges places with one before it that has a lower priority and asks for at least as many GPUs: the first
// such one. Whoever stands between the two, or behind them, has as many GPUs asked for before it as without that, or
// fewer, so that no other owner loses by it. The highest priority chooses first, of one priority the oldest. When all
// have chosen nobody could choose again: whoever came to stand before one that had chosen asks for less than it, and
// for no more than the one that stood there then.
func Places(runs []Waiting) []int {
	n := len(runs)
	places, at := make([]int, n), make([]int, n) // the place of each Run, and who is there
	order := make([]int, n)
	for i := range runs {
		places[i], at[i], order[i] = i, i, i
	}
	if !mixed(runs) {
		return places
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(runs[y].Priority, runs[x].Priority) })
	lower := newFirsts(n) // by place, what those ask for who have not chosen yet and would give way
	for i, r := range runs {
		if !r.Keeps {
			lower.set(i, r.GPUs)
		}
	}
	for first := 0; first < n; {
		end := first
		for ; end < n && runs[order[end]].Priority == runs[order[first]].Priority; end++ {
			lower.set(places[order[end]], none)
		}
		for _, run := range order[first:end] {
			from := places[run]
			to, found := lower.before(from, runs[run].GPUs)
			if !found {
				continue
			}
			other := at[to]
			places[run], places[other], at[to], at[from] = to, from, run, other
			lower.set(to, none)
			lower.set(from, runs[other].GPUs)
		}
		first = end
	}
	return places
}

// mixed reports whether Runs have different priorities.
func mixed(runs []Waiting) bool {
	return slices.ContainsFunc(runs, func(r Waiting) bool { return r.Priority != runs[0].Priority })
}

// none is what stands where nobody gives way.
const none = -1

// firsts finds the first of some numbers that is large enough, in steps that grow with the logarithm of their count. It
// is a tree whose inner nodes hold the largest number below them; the children of node i are 2i and 2i+1.
type firsts struct {
	leaves int
	most   []int
}

func newFirsts(n int) *firsts {
	f := &firsts{leaves: 1}
	for f.leaves < n {
		f.leaves *= 2
	}
	f.most = slices.Repeat([]int{none}, 2*f.leaves)
	return f
}

func (f *firsts) set(at, number int) {
	at += f.leaves
	f.most[at] = number
	for at /= 2; at > 0; at /= 2 {
		f.most[at] = max(f.most[2*at], f.most[2*at+1])
	}
}

// before returns where the first number is that is at least as large as another, if it is before an end.
func (f *firsts) before(end, least int) (int, bool) {
	at := 1
	if f.most[at] < least {
		return 0, false
	}
	for at < f.leaves {
		at *= 2
		if f.most[at] < least {
			at++
		}
	}
	at -= f.leaves
	return at, at < end
}
