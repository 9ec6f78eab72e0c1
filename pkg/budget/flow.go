package budget

// flow decides whether demand by class can be met by capacity by payer, where a class may use only some payers: a
// transport problem, solved by augmenting paths. It keeps its arrays between calls, since pack asks many times.
type flow struct {
	capacity []int
	sent     [][]int // sent[class][payer]
	seen     []bool  // classes visited by the path under search
}

// capacities returns a scratch slice of n capacities.
func (f *flow) capacities(n int) []int {
	if cap(f.capacity) < n {
		f.capacity = make([]int, n)
	}
	return f.capacity[:n]
}

// feasible reports whether all demand can be met. It consumes capacity.
func (f *flow) feasible(payers [][]int, demand, capacity []int) bool {
	f.reset(len(demand), len(capacity))
	for class, want := range demand {
		for want > 0 {
			clear(f.seen)
			pushed := f.push(payers, class, want, capacity)
			if pushed == 0 {
				return false
			}
			want -= pushed
		}
	}
	return true
}

// push sends up to want pods of a class to its payers, moving pods of other classes out of the way where it must, and
// returns how many it sent.
func (f *flow) push(payers [][]int, class, want int, capacity []int) int {
	f.seen[class] = true
	for _, payer := range payers[class] {
		if n := min(want, capacity[payer]); n > 0 {
			capacity[payer] -= n
			f.sent[class][payer] += n
			return n
		}
	}
	for _, payer := range payers[class] {
		for other := range f.sent {
			if f.seen[other] || f.sent[other][payer] == 0 {
				continue
			}
			n := f.push(payers, other, min(want, f.sent[other][payer]), capacity)
			if n > 0 {
				f.sent[other][payer] -= n
				f.sent[class][payer] += n
				return n
			}
		}
	}
	return 0
}

func (f *flow) reset(classes, payers int) {
	for len(f.sent) < classes {
		f.sent = append(f.sent, nil)
	}
	f.sent = f.sent[:classes]
	for class := range f.sent {
		if len(f.sent[class]) != payers {
			f.sent[class] = make([]int, payers)
		}
		clear(f.sent[class])
	}
	if len(f.seen) < classes {
		f.seen = make([]bool, classes)
	}
}
