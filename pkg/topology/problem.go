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

// lot is the nodes of a site that have one payer class.
type lot struct {
	class int
	pods  int    // that fit
	used  int    // of them, on nodes that already hold something
	empty []tier // nodes that hold nothing, largest first
}

// tier counts empty nodes that fit the same number of pods.
type tier struct{ pods, nodes int }

// opens is how many empty nodes so many pods open at least.
func (l *lot) opens(pods int) int {
	opened, left := 0, pods-l.used
	for _, t := range l.empty {
		if left <= 0 {
			break
		}
		n := min(t.nodes, (left+t.pods-1)/t.pods)
		opened += n
		left -= n * t.pods
	}
	return opened
}

// add puts the nodes of a pool into the lot.
func (l *lot) add(p *pool, r *Request) {
	for free := r.GPUsPerPod; free < len(p.used); free++ {
		l.used += r.usable(p.used[free]) * (free / r.GPUsPerPod)
	}
	l.pods = l.used
	for free := r.GPUsPerPod; free < len(p.empty); free++ {
		if n := r.usable(p.empty[free]); n > 0 {
			l.addTier(tier{pods: free / r.GPUsPerPod, nodes: n})
		}
	}
	for _, t := range l.empty {
		l.pods += t.pods * t.nodes
	}
}

func (l *lot) addTier(t tier) {
	i, ok := slices.BinarySearchFunc(l.empty, t, func(a, b tier) int { return cmp.Compare(b.pods, a.pods) })
	if ok {
		l.empty[i].nodes += t.nodes
	} else {
		l.empty = slices.Insert(l.empty, i, t)
	}
}

func (r *Request) usable(nodes []*node) int {
	if r.Excluded == nil {
		return len(nodes)
	}
	n := 0
	for _, node := range nodes {
		if !r.Excluded(node.Name) {
			n++
		}
	}
	return n
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
		switch pods := r.Groups[i].Pods; {
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

// meetPurse asks for the class of every label set, and whether the purse could refuse anything at all: when it covers
// as many pods of every class as the request could put there, classes play no part in the choice.
func (p *problem) meetPurse(f *Fleet, r *Request, s *stock) {
	if p.purse == nil {
		p.merged = true
		return
	}
	demand := make([]int, 0, 8)
	total := r.pods()
	for _, b := range s.blocks {
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
