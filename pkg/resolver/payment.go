package resolver

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sort"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

const (
	// maxPayers is how many may pay for one ticket.
	maxPayers = 16
	// payAsks bounds how many questions a draw takes to find who pays: 10 ms when a question takes 20 µs. Owners have
	// equal parts of it, so that what one does with its priorities leaves others theirs.
	payAsks = 500
)

// pay has tickets that are cut be paid by others instead: by Runs of the same owner that have tickets and a lower
// priority (R44). It does so once all that is cut is known: neither who is drawn depends on priorities, nor what
// anybody else loses. Each owner's payments are found as if no other's Runs paid. Where those of several owners do not
// fit together, the owners drawn later pay themselves; where they free so much together that something else need not
// be cut, that is taken back. Of one owner those of the highest priority come first; when its questions are used up the
// rest pay themselves. It returns who pays, by the ticket.
func (t *simulation) pay(drawn []int) map[int][]int {
	asDrawn, all, owners, paid := t.chosen, t.chosen, 0, map[int][]int{}
	for _, own := range t.ranksOf(drawn) {
		t.chosen, t.left = slices.Clone(asDrawn), t.share
		by := t.paymentsOf(own)
		t.left = math.MaxInt
		if len(by) == 0 {
			continue
		}
		t.chosen = all.changed(asDrawn, t.chosen)
		if owners == 0 || t.fits() {
			all = t.chosen
			maps.Copy(paid, by)
			owners++
		}
	}
	t.chosen = all
	if owners > 1 {
		t.putBackUnpaid(drawn, paid)
	}
	return paid
}

// paymentsOf finds who pays for tickets of one owner.
func (t *simulation) paymentsOf(own []int) map[int][]int {
	paid := map[int][]int{}
	for _, p := range own {
		if by := t.payFor(p, paid); len(by) > 0 {
			paid[p] = by
		}
	}
	return paid
}

// putBackUnpaid takes back what is not needed once several owners' Runs have paid, in the order in which it is taken
// back before. Who pays for a ticket goes with the others who do.
func (t *simulation) putBackUnpaid(drawn []int, paid map[int][]int) {
	for _, p := range drawn {
		if by, ok := paid[p]; ok && t.putBackAll(by) {
			delete(paid, p)
		} else if !ok && t.chosen.has(p) && !pays(paid, p) {
			t.putBack(p)
		}
	}
	t.putBackUnneeded(nil)
}

// pays reports whether a ticket is among those who pay.
func pays(paid map[int][]int, q int) bool {
	for _, by := range paid {
		if slices.Contains(by, q) {
			return true
		}
	}
	return false
}

// putBackAll takes back all that some tickets' Runs hold, unless the Run that waits would not fit then.
func (t *simulation) putBackAll(tickets []int) bool {
	before := t.chosen
	t.chosen = slices.Clone(before)
	for _, q := range tickets {
		for _, part := range t.of[t.units[q].candidate] {
			t.chosen.remove(part)
		}
	}
	if t.fits() {
		return true
	}
	t.chosen = before
	return false
}

// ranksOf returns the tickets that are cut and have priorities, by owner in the order of drawing.
func (t *simulation) ranksOf(drawn []int) [][]int {
	at := map[int]int{}
	var out [][]int
	for _, p := range drawn {
		own := t.units[p].candidate
		if !t.chosen.has(p) || t.candidates[own].Priority == nil {
			continue
		}
		i, ok := at[t.ownerOf[own]]
		if !ok {
			i = len(out)
			at[t.ownerOf[own]], out = i, append(out, nil)
		}
		out[i] = append(out[i], p)
	}
	for _, own := range out {
		slices.SortFunc(own, func(a, b int) int {
			x, y := &t.candidates[t.units[a].candidate], &t.candidates[t.units[b].candidate]
			return cmp.Or(cmp.Compare(*y.Priority, *x.Priority), cmp.Compare(a, b))
		})
	}
	return out
}

// payFor has others pay for a ticket, if they free as many GPUs as it would, and without any of them would not, or the
// Run that waits would not fit; and if nothing else that is cut, beside what others pay, becomes unneeded. What the
// ticket's Run has given up besides it gets back as far as it can.
func (t *simulation) payFor(p int, paid map[int][]int) []int {
	order := t.payers(p)
	if len(order) == 0 {
		return nil
	}
	before := t.chosen
	enough := func(payers []int) bool {
		t.chosen = slices.Clone(before)
		t.chosen.remove(p)
		freed := 0
		for _, q := range payers {
			for _, part := range t.of[t.units[q].candidate] { // all that they hold goes with them
				if !t.chosen.has(part) {
					t.chosen.add(part)
					freed += t.units[part].gpus
				}
			}
		}
		return freed >= t.units[p].gpus && t.fits()
	}
	if by := fewest(order, enough); len(by) > 0 && enough(by) {
		t.putBackUnneededOf(t.units[p].candidate)
		if !t.spareable(by, paid) && t.left > 0 {
			return by
		}
	}
	t.chosen = before
	return nil
}

// fewest returns who is needed of payers: those in the shortest beginning that is enough, less everybody whom it is
// enough without, the last ones first. It returns none when all are not enough, or too many are needed.
func fewest(order []int, enough func([]int) bool) (needed []int) {
	if !enough(order) {
		return nil
	}
	n := sort.Search(len(order), func(n int) bool { return enough(order[:n]) })
	for n > 0 && len(needed) < maxPayers {
		n--
		needed = append(needed, order[n])
		n = shortest(n, func(n int) bool { return enough(slices.Concat(order[:n], needed)) })
	}
	if n > 0 {
		return nil
	}
	return needed
}

// shortest returns the least length that is enough, of which n is one. It takes few questions where that is little less
// than n: those next to somebody needed most often are, too.
func shortest(n int, enough func(int) bool) int {
	step := 1
	for n > 0 && enough(max(n-step, 0)) {
		n = max(n-step, 0)
		step *= 2
	}
	if n == 0 {
		return 0
	}
	least := max(n-step, 0) + 1
	return least + sort.Search(n-least, func(i int) bool { return enough(least + i) })
}

// payers returns the tickets that could pay for one, in the order in which they would: the lowest priority first, of
// one priority the youngest.
func (t *simulation) payers(p int) []int {
	own, owner := &t.candidates[t.units[p].candidate], t.ownerOf[t.units[p].candidate]
	var order []int
	for q, unit := range t.units {
		other := &t.candidates[unit.candidate]
		if unit.action == rqv1.CutLottery && !t.chosen.has(q) && t.ownerOf[unit.candidate] == owner &&
			other.Priority != nil && *other.Priority < *own.Priority {
			order = append(order, q)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := &t.candidates[t.units[a].candidate], &t.candidates[t.units[b].candidate]
		return cmp.Or(cmp.Compare(*x.Priority, *y.Priority), y.Started.Compare(x.Started), byName(x.Run, y.Run))
	})
	return order
}

// putBackUnneededOf gives a Run back what it need not give up: its steps, then its spares.
func (t *simulation) putBackUnneededOf(candidate int) {
	for last, ok := t.lastStep(candidate); ok && t.putBack(last); last, ok = t.lastStep(candidate) {
		continue
	}
	for _, p := range t.of[candidate] {
		if t.units[p].action == rqv1.CutDropSpare && t.chosen.has(p) {
			t.putBack(p)
		}
	}
}

// spareable reports whether something is cut, beside some tickets, without which the Run that waits would fit as well.
// Those who pay for one ticket are spared together.
func (t *simulation) spareable(beside []int, paid map[int][]int) bool {
	for _, p := range slices.Sorted(maps.Keys(paid)) {
		if t.putBackAll(paid[p]) {
			return true
		}
	}
	for p := range t.units {
		unit := &t.units[p]
		switch {
		case !t.chosen.has(p) || slices.Contains(beside, p) || pays(paid, p):
			continue
		case unit.action != rqv1.CutLottery && t.endsAll(unit.candidate):
			continue // it goes with its Run
		case unit.action.Narrows():
			if last, ok := t.lastStep(unit.candidate); !ok || last != p {
				continue
			}
		case unit.action == rqv1.CutDropSpare && t.goesWithStep(p):
			continue
		}
		if t.putBack(p) {
			return true
		}
	}
	return false
}

// goesWithStep reports whether a spare goes with a step that is given up.
func (t *simulation) goesWithStep(spare int) bool {
	for step, spares := range t.goesWith {
		if t.chosen.has(step) && slices.Contains(spares, spare) {
			return true
		}
	}
	return false
}

// record returns draws as a Reservation records them, with those who pay.
func (t *simulation) record(draws []Ticket, paid map[int][]int) []rqv1.Draw {
	out := make([]rqv1.Draw, len(draws))
	for i, ticket := range draws {
		out[i] = rqv1.Draw{Owner: ticket.Owner, Run: ticket.Run}
		p, ok := t.unitOf[ticket.Run]
		if !ok {
			continue
		}
		for _, q := range paid[p] {
			out[i].PaidBy = append(out[i].PaidBy, t.candidates[t.units[q].candidate].Run)
		}
		slices.SortFunc(out[i].PaidBy, byName)
	}
	return out
}

// ranked returns the candidates whose priorities may decide who pays: those of owners that have tickets of different
// ones. All others have none, and their records name none.
func ranked(candidates []Candidate) []Candidate {
	type span struct{ least, most int32 }
	spans := map[string]span{}
	for i := range candidates {
		c := &candidates[i]
		if !c.draws() || c.Priority == nil {
			continue
		}
		s, ok := spans[ownerKey(c.Owner)]
		if !ok {
			s = span{*c.Priority, *c.Priority}
		}
		spans[ownerKey(c.Owner)] = span{min(s.least, *c.Priority), max(s.most, *c.Priority)}
	}
	for i := range candidates {
		c := &candidates[i]
		if s := spans[ownerKey(c.Owner)]; !c.draws() || s.least == s.most {
			c.Priority = nil
		}
	}
	return candidates
}

// owners numbers the owners of candidates, and returns how many questions each has to find who pays. Those who have but
// one ticket need none.
func owners(candidates []Candidate) (of []int, share int) {
	number, tickets := map[string]int{}, map[int]int{}
	of = make([]int, len(candidates))
	several := 0
	for i := range candidates {
		key := ownerKey(candidates[i].Owner)
		if _, ok := number[key]; !ok {
			number[key] = len(number)
		}
		of[i] = number[key]
		if candidates[i].draws() {
			if tickets[of[i]]++; tickets[of[i]] == 2 {
				several++
			}
		}
	}
	return of, payAsks / max(several, 1)
}
