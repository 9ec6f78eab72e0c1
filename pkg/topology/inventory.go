package topology

import (
	"cmp"
	"maps"
	"slices"
)

// LeftOut is a node that takes no part, and why (R11).
type LeftOut struct {
	Node   string
	Reason string
}

// Domain is the nodes of one flavor in one fabric domain.
type Domain struct {
	// Key names the fabric domain: its level values joined by slashes, widest first. Slots and Groups use it.
	Key string
	// Values are the values of the levels, widest first, down to the fabric level.
	Values []string
	// Flavor is the GPU type; a domain with several flavors is listed once for each.
	Flavor string
	// Nodes are sorted by the levels below the fabric level, then by name.
	Nodes []NodeRoom
}

// NodeRoom is how much of a node is free.
type NodeRoom struct {
	Name string
	// GPUs is the allocatable number.
	GPUs int
	// Free is how many of them nobody holds; on an unschedulable node nothing new may use them.
	Free          int
	Unschedulable bool
}

// Free is the number of GPUs of a node that nobody holds, whether or not it is cordoned; 0 when it is left out.
func (f *Fleet) Free(name string) int {
	if n := f.nodes[name]; n != nil && n.domain != nil {
		return n.free()
	}
	return 0
}

// RoomFor returns how many pods of a request a node takes: none that is left out, cordoned or lost, or out of service
// while they would be there.
func (f *Fleet) RoomFor(r Request) func(node string) int {
	f.prepare(&r, r.Leaves)
	return func(name string) int {
		n := f.nodes[name]
		if n == nil || n.pool == nil || r.Within != nil && !r.Within[f.DomainOf(name)] {
			return 0
		}
		return r.room(n)
	}
}

// ClassOf returns the payer class of a node that takes pods.
func (f *Fleet) ClassOf(name string, purse Purse) int {
	return purse.Class(f.nodes[name].pool.set.labels)
}

// Held is the number of GPUs that are held on a node, known or not.
func (f *Fleet) Held(name string) int {
	if n := f.nodes[name]; n != nil {
		return n.held
	}
	return 0
}

// FreeOf is the number of GPUs of a flavor that are free on schedulable nodes.
func (f *Fleet) FreeOf(flavor string) int {
	if s := f.flavors[flavor]; s != nil {
		return s.free
	}
	return 0
}

// DomainRoom is how much of a fabric domain is free.
type DomainRoom struct {
	// Key names the domain, and Values are the values of the levels, widest first, down to the fabric level.
	Key    string
	Values []string
	// Free is the number of GPUs that are free on schedulable nodes.
	Free int
}

// RoomOf lists the domains that have nodes of a flavor, by key.
func (f *Fleet) RoomOf(flavor string) []DomainRoom {
	s := f.flavors[flavor]
	if s == nil {
		return nil
	}
	out := make([]DomainRoom, len(s.domains))
	for i, b := range s.domains {
		out[i] = DomainRoom{Key: b.path, Values: b.values, Free: b.free}
	}
	return out
}

// DomainCount is how much there is of a fabric domain, beside what is free.
type DomainCount struct {
	DomainRoom
	// GPUs and Nodes count all there are, and Unschedulable the nodes that take nothing new.
	GPUs, Nodes, Unschedulable int
	// Sizes is how many nodes have so many GPUs.
	Sizes map[int]int
}

// CountsOf lists the domains that have nodes of a flavor, by key. It looks at no single node.
func (f *Fleet) CountsOf(flavor string) []DomainCount {
	rooms := f.RoomOf(flavor)
	out := make([]DomainCount, len(rooms))
	for i, room := range rooms {
		b := f.flavors[flavor].domains[i]
		out[i] = DomainCount{DomainRoom: room, Nodes: len(b.nodes), Unschedulable: len(b.nodes)}
		out[i].Sizes = map[int]int{}
		for gpus, nodes := range b.sizes {
			if nodes > 0 {
				out[i].Sizes[gpus] = nodes
			}
			out[i].GPUs += gpus * nodes
		}
		for _, p := range b.pools {
			out[i].Unschedulable -= p.nodes
		}
	}
	return out
}

// Levels are the topology label keys, widest first, down to the fabric level.
func (f *Fleet) Levels() []string { return f.levels[:f.fabric+1] }

// Flavors lists the flavors that have a node, sorted.
func (f *Fleet) Flavors() []string { return slices.Sorted(maps.Keys(f.flavors)) }

// LeftOut lists, by name, the nodes that are left out although they have GPUs or name a flavor (R11). Nodes with
// neither are no part of a GPU fleet.
func (f *Fleet) LeftOut() []LeftOut {
	var out []LeftOut
	for name, n := range f.nodes {
		if n.reason != "" && (n.GPUs > 0 || n.Flavor != "") {
			out = append(out, LeftOut{Node: name, Reason: n.reason})
		}
	}
	slices.SortFunc(out, func(a, b LeftOut) int { return cmp.Compare(a.Node, b.Node) })
	return out
}

// Domains lists what the fleet holds, by key and flavor.
func (f *Fleet) Domains() []Domain {
	var out []Domain
	for _, s := range f.flavors {
		for _, b := range s.domains {
			d := Domain{Key: b.path, Values: slices.Clone(b.values), Flavor: s.name, Nodes: make([]NodeRoom, len(b.nodes))}
			for i, n := range b.nodes {
				d.Nodes[i] = NodeRoom{Name: n.Name, GPUs: n.GPUs, Free: n.free(), Unschedulable: n.Unschedulable}
			}
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b Domain) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Flavor, b.Flavor))
	})
	return out
}

// DomainOf gives the key of a node's fabric domain; "" when the node is unknown or left out.
func (f *Fleet) DomainOf(name string) string {
	if n := f.nodes[name]; n != nil && n.domain != nil {
		return n.domain.path
	}
	return ""
}

// Domain gives the key of a node's fabric domain and its topology labels down to the fabric level; false when the node
// is unknown or left out.
func (f *Fleet) Domain(name string) (key string, labels map[string]string, ok bool) {
	n := f.nodes[name]
	if n == nil || n.domain == nil {
		return "", nil, false
	}
	labels = map[string]string{}
	for i, value := range n.domain.values {
		labels[f.levels[i]] = value
	}
	return n.domain.path, labels, true
}
