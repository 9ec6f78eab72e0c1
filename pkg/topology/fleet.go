package topology

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/davidlangworthy/jobtree/pkg/outage"
)

// MaxLevels is the largest number of topology levels.
const MaxLevels = 8

// Fleet is the GPU nodes by topology and flavor, with the GPUs that are free on each (R11, R28). What it holds does not
// depend on the order of the calls that built it (R30).
type Fleet struct {
	levels  []string
	fabric  int      // index of the fabric level
	keys    []string // the selector keys, sorted
	nodes   map[string]*node
	flavors map[string]*flavorNodes
	sets    map[string]*labelSet
	packs   uint64 // how many problems have been laid out
	// outages are what is planned for nodes, by name; of nodes that are left out, too.
	outages map[string]outage.Window
	// resources are numbered beside GPUs; once there are as many as untidy, some may be of no use any more.
	resources map[string]int
	untidy    int
}

// NewFleet returns an empty fleet. levels are 1 to MaxLevels node label keys, widest first, and fabricLevel is the one
// that a group may not leave (R11). It panics when that does not hold; configuration is validated before.
func NewFleet(levels []string, fabricLevel string) *Fleet {
	fabric := slices.Index(levels, fabricLevel)
	if fabric < 0 || len(levels) > MaxLevels {
		panic(fmt.Sprintf("topology levels %q: want at most %d, with %q among them", levels, MaxLevels, fabricLevel))
	}
	return &Fleet{
		levels:  slices.Clone(levels),
		fabric:  fabric,
		nodes:   map[string]*node{},
		flavors: map[string]*flavorNodes{},
		sets:    map[string]*labelSet{},
		outages: map[string]outage.Window{},

		resources: map[string]int{}, untidy: 64,
	}
}

// SetSelectorKeys states the label keys that payers' selectors mention. Nodes are told apart, for the Purse, by their
// values of these keys and by nothing else. It regroups every node when the set of keys changes, and is free otherwise.
func (f *Fleet) SetSelectorKeys(keys []string) {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	if slices.Equal(keys, f.keys) {
		return
	}
	for _, n := range f.nodes {
		f.detach(n)
	}
	f.keys = keys
	for _, n := range f.nodes {
		f.attach(n)
	}
}

// SetNode adds or replaces a node. One without a value for every topology label, without a flavor or without GPUs is
// left out, which LeftOut reports; it stops no other node (R11).
func (f *Fleet) SetNode(n Node) {
	own := f.node(n.Name)
	if own.known && own.Node.equal(n) {
		return
	}
	f.detach(own)
	own.Node, own.known = n, true
	own.has = f.vector(n.Beside)
	if delete(f.outages, n.Name); n.Outage.Announced() {
		f.outages[n.Name] = n.Outage
	}
	f.attach(own)
}

// RemoveNode forgets a node; the GPUs held on its name are remembered until they are given back.
func (f *Fleet) RemoveNode(name string) {
	n, ok := f.nodes[name]
	if !ok {
		return
	}
	f.detach(n)
	delete(f.outages, name)
	n.Node, n.known, n.reason, n.has = Node{Name: name}, false, "", nil
	f.drop(n)
}

// Take notes that GPUs of a node are held. The node need not be known yet: pods may be seen before their nodes.
func (f *Fleet) Take(name string, gpus int) { f.hold(name, gpus) }

// Give notes that GPUs of a node are no longer held.
func (f *Fleet) Give(name string, gpus int) { f.hold(name, -gpus) }

// Hold notes that GPUs of a node are held, and amounts beside them; or no longer, where gpus is negative. Without GPUs
// it notes nothing.
func (f *Fleet) Hold(name string, gpus int, beside *Amounts) {
	f.hold(name, gpus)
	f.Burden(name, beside, cmp.Compare(gpus, 0))
}

func (f *Fleet) hold(name string, gpus int) {
	n := f.node(name)
	if n.pool != nil {
		n.pool.remove(n)
	}
	n.held += gpus
	if n.pool != nil {
		n.pool.insert(n)
	}
	f.drop(n)
}

// node returns the record of a name, a new one when there is none.
func (f *Fleet) node(name string) *node {
	n := f.nodes[name]
	if n == nil {
		n = &node{Node: Node{Name: name}}
		f.nodes[name] = n
	}
	return n
}

// drop forgets a record that says nothing.
func (f *Fleet) drop(n *node) {
	if !n.known && n.held == 0 && n.burdens == 0 {
		delete(f.nodes, n.Name)
	}
}

// attach puts a known node where it belongs.
func (f *Fleet) attach(n *node) {
	if !n.known {
		return
	}
	n.reason = f.outOfService(n.Node)
	if n.reason != "" {
		return
	}
	values, order := f.place(n.Node)
	n.order = order
	n.domain = f.domainFor(n, values)
	n.domain.insert(n)
	n.domain.of.whole, n.domain.of.unheld = nil, nil
	if !n.Unschedulable {
		n.pool = f.poolFor(n)
		n.pool.insert(n)
	}
}

// detach takes a node out, with the pool, domain and flavor that would be left without nodes.
func (f *Fleet) detach(n *node) {
	if p := n.pool; p != nil {
		p.remove(n)
		n.pool = nil
		if p.nodes == 0 {
			i, _ := p.domain.findPool(p.set)
			p.domain.pools = slices.Delete(p.domain.pools, i, i+1)
			p.set.pools--
			if p.set.pools == 0 {
				delete(f.sets, p.set.key)
			}
		}
	}
	if b := n.domain; b != nil {
		b.remove(n)
		b.of.whole, b.of.unheld = nil, nil
		n.domain = nil
		if len(b.nodes) == 0 {
			i, _ := b.of.find(b.path)
			b.of.domains = slices.Delete(b.of.domains, i, i+1)
			if len(b.of.domains) == 0 {
				delete(f.flavors, b.of.name)
			}
		}
	}
}
