package budget

import "slices"

// flow shares demand by class among offers. Offers are filled in their order, each as far as its limits and the demand
// allow, moving what earlier offers pay for among the classes but never paying less: so that the first pays as much as
// it can, then the second, and so on (R2). Whatever meets all demand like this is the best there is. Where offers share
// a limit and pay for different classes, it may take an earlier offer to pay less: the exact search sees to that. Flow
// keeps its arrays between calls, since pack asks many times.
type flow struct {
	left  []int   // pods that each limit still lets in
	sent  [][]int // by class and offer
	unmet []int   // by class
	from  []hop   // how the search came to a class
	queue []int
}

// hop is how a class is reached in the search for a way to pay: by taking the place of another class at an offer.
type hop struct {
	seen         bool
	class, offer int // -1 at the start
}

func (f *flow) reset(classes int, left []int) {
	f.left = left
	for len(f.sent) < classes {
		f.sent = append(f.sent, nil)
	}
	f.from = slices.Grow(f.from[:0], classes)[:classes]
}

// residuals returns how many pods each limit lets in.
func (c *Cover) residuals(p price) []int {
	left := slices.Grow(c.flow.left[:0], len(c.limits))[:len(c.limits)]
	for i := range c.limits {
		left[i] = c.limits[i].pods(p)
	}
	return left
}

// share reports whether all demand can be paid for, and leaves who pays for what in the flow.
func (c *Cover) share(demand []int, p price) bool {
	f := &c.flow
	if c.fill(demand, p) {
		return true
	}
	if c.short(demand, p) {
		return false
	}
	s := c.exactly(c.classes, demand, p)
	if s == nil {
		return false
	}
	for class := range s.sent {
		copy(f.sent[class], s.sent[class])
	}
	return true
}

// short reports whether demand that the offers did not meet cannot be met: because no two of them share a limit, or
// because all that pay for the classes concerned, or for any, pay for too little together.
func (c *Cover) short(demand []int, p price) bool {
	f, t := &c.flow, c.nested()
	if len(t.crossing) > 0 {
		return false
	}
	for _, all := range []bool{false, true} {
		f.left = c.residuals(p)
		wanted := 0
		for class := range demand {
			if !all && f.unmet[class] == 0 {
				continue
			}
			wanted += demand[class]
			for _, offer := range c.classes[class] {
				wanted -= f.take(&c.Offers[offer], unbounded) // nothing is left for a second class
			}
		}
		if wanted > 0 {
			return true
		}
	}
	return len(t.tree) == 0
}

// fill has the offers pay in their order, and reports whether that meets all demand.
func (c *Cover) fill(demand []int, p price) bool {
	f := &c.flow
	f.reset(len(demand), c.residuals(p))
	f.unmet = append(f.unmet[:0], demand...)
	total := 0
	for class := range demand {
		total += demand[class]
		f.sent[class] = slices.Grow(f.sent[class][:0], len(c.Offers))[:len(c.Offers)]
		clear(f.sent[class])
	}
	for i := range c.Offers {
		for total > 0 {
			class := f.reach(c.classes, len(demand), i)
			if class < 0 {
				break
			}
			n := f.take(&c.Offers[i], f.width(class, i))
			if n == 0 {
				break
			}
			f.push(class, i, n)
			total -= n
		}
	}
	return total == 0
}

// take uses up to n pods of the limits over an offer, and returns how many they let in.
func (f *flow) take(o *Offer, n int) int {
	if len(o.limits) == 0 {
		return 0
	}
	for _, l := range o.limits {
		n = min(n, f.left[l])
	}
	for _, l := range o.limits {
		f.left[l] -= n
	}
	return n
}

// reach finds a class that an offer pays for and that has unmet demand, or stands where a class with unmet demand could
// stand instead. It returns -1 if there is none.
func (f *flow) reach(payers [][]int, classes, offer int) int {
	f.queue = f.queue[:0]
	for class := range classes {
		f.from[class] = hop{class: -1, offer: -1}
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
			for other := range classes {
				if !f.from[other].seen && f.sent[other][earlier] > 0 {
					f.from[other] = hop{true, class, earlier}
					f.queue = append(f.queue, other)
				}
			}
		}
	}
	return -1
}

// width is how many pods can take the way that was found.
func (f *flow) width(class, offer int) int {
	n := 1 << 40
	for ; f.from[class].class >= 0; class = f.from[class].class {
		n = min(n, f.sent[class][f.from[class].offer])
	}
	return min(n, f.unmet[class])
}

// push sends n pods along the way that was found.
func (f *flow) push(class, offer, n int) {
	f.sent[class][offer] += n
	for ; f.from[class].class >= 0; class = f.from[class].class {
		h := f.from[class]
		f.sent[class][h.offer] -= n
		f.sent[h.class][h.offer] += n
	}
	f.unmet[class] -= n
}
