package book

import (
	"slices"

	"github.com/davidlangworthy/jobtree/pkg/published"
)

// FleetSummary returns how much of the fleet is free, by fabric domain and GPU type. It reads counters, and goes
// through no node and no pod but the nodes that have been promised to Runs with a date.
func (b *Book) FleetSummary() published.Fleet {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	out := published.Fleet{Levels: slices.Clone(b.fleet.Levels())}
	promised := b.agenda.promisedOn()
	in := map[[2]string]int{} // by domain and flavor
	for name, gpus := range promised {
		if node := b.nodes.byName[name]; node != nil {
			in[[2]string{b.fleet.DomainOf(name), b.nodes.flavorOf(node)}] += min(gpus, b.nodes.gpusOf(node))
		}
	}
	for _, flavor := range b.fleet.Flavors() {
		for _, room := range b.fleet.CountsOf(flavor) {
			out.Domains = append(out.Domains, published.Domain{Values: slices.Clone(room.Values), GPUType: flavor,
				GPUs: room.GPUs, Free: room.Free, Promised: in[[2]string{room.Key, flavor}],
				Nodes: room.Nodes, OutOfService: room.Unschedulable, NodesByGPUs: room.Sizes})
		}
	}
	slices.SortFunc(out.Domains, published.Compare)
	return out
}
