package topology

import (
	"cmp"
	"slices"
)

// problem is a Request laid over the fleet, as bin packing: pieces, each of which must lie in one candidate domain, and
// candidates with room.
type problem struct {
	gpus       int   // of a pod
	sizes      []int // distinct sizes of the pieces in pods, largest first
	counts     []int // how many pieces have each size
	levels     int   // topology levels down to the fabric level
	candidates []candidate
	bins       []bin
	purse      Purse // nil when it has nothing to refuse
	merged     bool  // whether all payable nodes count as class 0
	classes    int
	must       map[string]int // pods that are bound to a domain, by its key
	lost       bool           // whether such a domain has no node of the flavor
}

// candidate is the part of a domain that the request may use.
type candidate struct {
	domain *fabricDomain
	units  [MaxLevels]int // which unit of each level it lies in; numbers rise with the candidates
	lo, hi int            // its bins
	pods   int            // that fit
	must   int            // pods of groups that are bound to it
}

// layOut reads the fleet once for a request.
func (f *Fleet) layOut(r *Request, s *flavorNodes) *problem {
	f.packs++
	p := &problem{gpus: r.GPUsPerPod, levels: f.fabric + 1, purse: r.Purse, classes: 1}
	p.makePieces(r)
	p.readClasses(f, r, s)
	p.candidates = make([]candidate, 0, len(s.domains))
	p.bins = make([]bin, 0, len(s.domains))
	for _, b := range s.domains {
		p.addCandidate(f, r, b, p.must[b.path])
	}
	for path := range p.must {
		if _, ok := s.find(path); !ok {
			p.lost = true
		}
	}
	return p
}

// makePieces makes the pieces, and counts the pods that are bound to a domain.
func (p *problem) makePieces(r *Request) {
	var loose []int
	total := 0
	for i, domain := range r.domains() {
		switch pods := r.Groups[i].size(); {
		case pods == 0:
		case domain != "":
			if p.must == nil {
				p.must = map[string]int{}
			}
			p.must[domain] += pods
		default:
			loose = append(loose, pods)
			total += pods
		}
	}
	switch {
	case total == 0:
	case r.OneDomain:
		p.sizes, p.counts = []int{total}, []int{1}
	case !r.Confined:
		p.sizes, p.counts = []int{1}, []int{total}
	default:
		slices.SortFunc(loose, func(a, b int) int { return cmp.Compare(b, a) })
		for i, size := range loose {
			if i == 0 || size != loose[i-1] {
				p.sizes, p.counts = append(p.sizes, size), append(p.counts, 0)
			}
			p.counts[len(p.counts)-1]++
		}
	}
}

func (p *problem) addCandidate(f *Fleet, r *Request, b *fabricDomain, must int) {
	at := candidate{domain: b, lo: len(p.bins), hi: len(p.bins), must: must}
	for _, pool := range b.pools {
		class := p.class(f, pool.set)
		if class < 0 || pool.free < p.gpus {
			continue
		}
		i := at.lo
		for i < at.hi && p.bins[i].class != class {
			i++
		}
		if i == at.hi {
			p.bins = append(p.bins, bin{class: class})
			at.hi++
		}
		p.bins[i].add(pool, r)
	}
	for i := at.lo; i < at.hi; i++ {
		at.pods += p.bins[i].pods
	}
	if at.pods == 0 && must == 0 {
		p.bins = p.bins[:at.lo]
		return
	}
	slices.SortFunc(p.bins[at.lo:at.hi], func(a, b bin) int { return cmp.Compare(a.class, b.class) })
	p.numberUnits(&at)
	p.candidates = append(p.candidates, at)
}

// numberUnits gives the candidate its units: those of the candidate before it as far as their level values agree, new
// ones below.
func (p *problem) numberUnits(at *candidate) {
	if len(p.candidates) == 0 {
		return
	}
	before := &p.candidates[len(p.candidates)-1]
	same := true
	for l := range p.levels {
		same = same && before.domain.values[l] == at.domain.values[l]
		at.units[l] = before.units[l]
		if !same {
			at.units[l]++
		}
	}
}
