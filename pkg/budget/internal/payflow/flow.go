package payflow

import "slices"

// flow shares demand by class among offers, by augmenting paths. Offers are filled in their order, each as far as its
// limits and the demand allow, moving what earlier offers pay for among the classes but never paying less: so that the
// first pays as much as it can, then the second, and so on. Whatever meets all demand like this is the best there is.
// Where offers share a limit and pay for different classes, it may take an earlier offer to pay less: the exact search
// sees to that.
type flow struct {
	room  []int   // pods that each limit still lets in
	sent  [][]int // by class and offer
	unmet []int   // by class
	from  []visit // how the search came to a class
	queue []int
}

// visit is how the breadth-first search came to a class: by taking the place of another class at an offer.
type visit struct {
	seen         bool
	class, offer int // -1 at the start
}

// fill has the offers pay in their order, and reports whether that meets all demand.
func (p *Payers) fill(payers [][]int, demand, room []int) bool {
	f := &p.flow
	f.reset(demand, room, len(p.offers))
	total := 0
	for _, pods := range demand {
		total += pods
	}
	for offer := range p.offers {
		for total > 0 {
			class := f.search(payers, offer)
			if class < 0 {
				break
			}
			n := p.Take(offer, f.width(class), f.room)
			if n == 0 {
				break
			}
			f.augment(class, offer, n)
			total -= n
		}
	}
	return total == 0
}

func (f *flow) reset(demand, room []int, offers int) {
	f.room = append(f.room[:0], room...)
	f.unmet = append(f.unmet[:0], demand...)
	f.from = slices.Grow(f.from[:0], len(demand))[:len(demand)]
	for len(f.sent) < len(demand) {
		f.sent = append(f.sent, nil)
	}
	for class := range demand {
		f.sent[class] = slices.Grow(f.sent[class][:0], offers)[:offers]
		clear(f.sent[class])
	}
}

// search finds, breadth first, a class that an offer pays for and that has unmet demand, or stands where a class with
// unmet demand could stand instead. It returns -1 if there is none.
func (f *flow) search(payers [][]int, offer int) int {
	f.queue = f.queue[:0]
	for class := range f.unmet {
		f.from[class] = visit{class: -1, offer: -1}
		if f.unmet[class] > 0 {
			f.from[class].seen = true
			f.queue = append(f.queue, class)
		}
	}
	for head := 0; head < len(f.queue); head++ {
		class := f.queue[head]
		if _, pays := slices.BinarySearch(payers[class], offer); pays {
			return class
		}
		for _, earlier := range payers[class] {
			if earlier >= offer {
				break
			}
			for other := range f.unmet {
				if !f.from[other].seen && f.sent[other][earlier] > 0 {
					f.from[other] = visit{true, class, earlier}
					f.queue = append(f.queue, other)
				}
			}
		}
	}
	return -1
}

// width is how many pods can take the path that was found to a class.
func (f *flow) width(class int) int {
	n := Unbounded
	for ; f.from[class].class >= 0; class = f.from[class].class {
		n = min(n, f.sent[class][f.from[class].offer])
	}
	return min(n, f.unmet[class])
}

// augment sends n pods along the path that was found.
func (f *flow) augment(class, offer, n int) {
	f.sent[class][offer] += n
	for ; f.from[class].class >= 0; class = f.from[class].class {
		v := f.from[class]
		f.sent[class][v.offer] -= n
		f.sent[v.class][v.offer] += n
	}
	f.unmet[class] -= n
}
