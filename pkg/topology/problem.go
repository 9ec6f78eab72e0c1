package topology

import (
	"cmp"
	"slices"
)

// problem is a Request laid over the fleet: pieces, which must each lie in one site, and sites with room.
type problem struct {
	gpus    int   // of a pod
	sizes   []int // distinct sizes of the pieces in pods, largest first
	counts  []int // how many pieces have each size
	levels  int   // topology levels down to the fabric level
	sites   []site
	lots    []lot
	purse   Purse // nil when it has nothing to refuse
	merged  bool  // whether all payable nodes count as class 0
	classes int
	must    map[string]int // pods that are bound to a domain, by its key
	lost    bool           // whether such a domain has no node of the flavor
}

// site is the part of a block that this request may use.
type site struct {
	block  *block
	units  [MaxLevels]int // which unit of each level it lies in; numbers rise with the sites
	lo, hi int            // its lots
	pods   int            // that fit
	must   int            // pods of groups that are bound to it
}

// lay reads the fleet once for a request.
func (f *Fleet) lay(r *Request, s *stock) *problem {
	f.packs++
	p := &problem{gpus: r.GPUsPerPod, levels: f.fabric + 1, purse: r.Purse, classes: 1}
	p.cut(r)
	p.meetPurse(f, r, s)
	p.sites = make([]site, 0, len(s.blocks))
	p.lots = make([]lot, 0, len(s.blocks))
	for _, b := range s.blocks {
		p.addSite(f, r, b, p.must[b.path])
	}
	for path := range p.must {
		if _, ok := s.find(path); !ok {
			p.lost = true
		}
	}
	return p
}

// cut makes the pieces, and counts the pods that are bound to a domain.
func (p *problem) cut(r *Request) {
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

func (p *problem) addSite(f *Fleet, r *Request, b *block, must int) {
	at := site{block: b, lo: len(p.lots), hi: len(p.lots), must: must}
	for _, pool := range b.pools {
		class := p.class(f, pool.set)
		if class < 0 || pool.free < p.gpus {
			continue
		}
		i := at.lo
		for i < at.hi && p.lots[i].class != class {
			i++
		}
		if i == at.hi {
			p.lots = append(p.lots, lot{class: class})
			at.hi++
		}
		p.lots[i].add(pool, r)
	}
	for i := at.lo; i < at.hi; i++ {
		at.pods += p.lots[i].pods
	}
	if at.pods == 0 && must == 0 {
		p.lots = p.lots[:at.lo]
		return
	}
	slices.SortFunc(p.lots[at.lo:at.hi], func(a, b lot) int { return cmp.Compare(a.class, b.class) })
	p.number(&at)
	p.sites = append(p.sites, at)
}

// number gives the site its units: those of the site before it as far as their level values agree, new ones below.
func (p *problem) number(at *site) {
	if len(p.sites) == 0 {
		return
	}
	before := &p.sites[len(p.sites)-1]
	same := true
	for l := range p.levels {
		same = same && before.block.values[l] == at.block.values[l]
		at.units[l] = before.units[l]
		if !same {
			at.units[l]++
		}
	}
}
