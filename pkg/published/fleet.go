package published

import (
	"maps"
	"slices"
	"strings"
)

// mostDomains is how many lines a summary has at most: a ConfigMap holds no more than a MiB, and is written whenever a
// line changes.
const mostDomains = 1000

// Fleet says how much of the fleet is free, in numbers alone: it names neither nodes nor Runs.
type Fleet struct {
	// Levels are the node labels whose values name a domain, widest first.
	Levels []string `json:"levels"`
	// Domains are ordered by the values of the levels, then by GPU type. One with nodes of several types is listed once
	// for each.
	Domains []Domain `json:"domains"`
}

// Domain is the nodes of one GPU type in one domain.
type Domain struct {
	// Values are those of the levels, widest first.
	Values []string `json:"domain"`
	// GPUType is what a Run names in gpuType.
	GPUType string `json:"gpuType"`
	// GPUs is how many the nodes have, Free how many of them nobody holds on nodes that are in service, and Promised how
	// many, free or not, are going to be used by Runs that wait and have a date.
	GPUs     int `json:"gpus"`
	Free     int `json:"free"`
	Promised int `json:"promised"`
	// Nodes is how many there are, and OutOfService how many of them take nothing new: they are lost or cordoned, or show
	// a sign of an outage.
	Nodes        int `json:"nodes"`
	OutOfService int `json:"outOfService"`
	// NodesByGPUs is how many nodes have so many GPUs.
	NodesByGPUs map[int]int `json:"nodesByGPUs"`
}

// add counts the nodes of another domain as well.
func (d *Domain) add(o *Domain) {
	d.GPUs += o.GPUs
	d.Free += o.Free
	d.Promised += o.Promised
	d.Nodes += o.Nodes
	d.OutOfService += o.OutOfService
	d.NodesByGPUs = maps.Clone(d.NodesByGPUs)
	for gpus, nodes := range o.NodesByGPUs {
		d.NodesByGPUs[gpus] += nodes
	}
}

// NodesOf returns the nodes of a type by domain: how many of them have so many GPUs.
func (f Fleet) NodesOf(gpuType string) (out []map[int]int) {
	for i := range f.Domains {
		if d := &f.Domains[i]; d.GPUType == gpuType {
			out = append(out, d.NodesByGPUs)
		}
	}
	return out
}

// Bounded returns the fleet in at most 1,000 lines, of the narrowest domains that allow it; of types alone, there are
// as many lines as there are types.
func (f Fleet) Bounded() Fleet {
	for len(f.Domains) > mostDomains && len(f.Levels) > 0 {
		f = f.wider()
	}
	if f.Domains == nil {
		f.Domains = []Domain{}
	}
	return f
}

// wider returns the fleet without the narrowest level.
func (f Fleet) wider() Fleet {
	out := Fleet{Levels: f.Levels[:len(f.Levels)-1]}
	at := map[string]int{}
	for i := range f.Domains {
		d := f.Domains[i]
		d.Values = d.Values[:len(out.Levels)]
		key := strings.Join(append(slices.Clone(d.Values), d.GPUType), "\x00")
		if j, ok := at[key]; ok {
			out.Domains[j].add(&d)
			continue
		}
		at[key] = len(out.Domains)
		out.Domains = append(out.Domains, d)
	}
	slices.SortFunc(out.Domains, Compare)
	return out
}

// Compare orders domains.
func Compare(a, b Domain) int {
	if order := slices.Compare(a.Values, b.Values); order != 0 {
		return order
	}
	return strings.Compare(a.GPUType, b.GPUType)
}
