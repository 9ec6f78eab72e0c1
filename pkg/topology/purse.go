package topology

// Purse bounds what can be paid for (R3). The cover planner implements it; a nil Purse pays for everything.
type Purse interface {
	// Class is the payer class of nodes with these labels, of which only the selector keys are given: nodes of one class
	// can be paid for by the same envelopes. Classes are small numbers from 0; a negative one says that nobody pays there.
	// Pack calls it at most once for each distinct label set, and keeps no reference to labels.
	Class(labels map[string]string) int
	// Covers says whether demand[c] pods on nodes of each class c can all be paid for at once. It is monotone: whatever
	// is covered stays covered when any of the numbers goes down. It keeps no reference to demand.
	Covers(demand []int) bool
}

// readClasses asks for the class of every label set, and whether the purse could refuse anything at all: when it covers
// as many pods of every class as the request could put there, classes play no part in the choice.
func (p *problem) readClasses(f *Fleet, r *Request, s *flavorNodes) {
	if p.purse == nil {
		p.merged = true
		return
	}
	demand := make([]int, 0, 8)
	total := r.pods()
	for _, b := range s.domains {
		for _, pool := range b.pools {
			class := pool.set.payer(f, p.purse)
			if class < 0 {
				continue
			}
			for len(demand) <= class {
				demand = append(demand, 0)
			}
			demand[class] = min(total, demand[class]+pool.free/p.gpus)
		}
	}
	if p.purse.Covers(demand) {
		p.purse, p.merged = nil, true
		return
	}
	p.classes = len(demand)
}

// payer is the purse's class of the set, asked for once a Pack.
func (s *labelSet) payer(f *Fleet, purse Purse) int {
	if s.pack != f.packs {
		s.pack, s.class = f.packs, 0
		if purse != nil {
			s.class = purse.Class(s.labels)
		}
	}
	return s.class
}

// class is the class that a label set counts as in this problem, negative when nobody pays.
func (p *problem) class(f *Fleet, s *labelSet) int {
	if class := s.payer(f, p.purse); class < 0 || !p.merged {
		return class
	}
	return 0
}
