package topology

import (
	"iter"
	"maps"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/outage"
)

// Outage returns what is planned for a node.
func (f *Fleet) Outage(name string) outage.Window { return f.outages[name] }

// AnyPlanned reports whether anything is planned for any node.
func (f *Fleet) AnyPlanned() bool { return len(f.outages) > 0 }

// Planned goes through what is planned for nodes, in no order.
func (f *Fleet) Planned() iter.Seq2[string, outage.Window] { return maps.All(f.outages) }

// Outages returns what is planned for the nodes of a flavor, in no order.
func (f *Fleet) Outages(flavor string) (out []outage.Window) {
	for name, w := range f.outages {
		if n := f.nodes[name]; n.pool != nil && n.Flavor == flavor {
			out = append(out, w)
		}
	}
	return out
}

// shutOut adds to the nodes that a request excludes those with an outage while its pods would be there. It stays nil
// where there is none, so that nobody need ask about single nodes.
func (f *Fleet) shutOut(r *Request) func(node string) bool {
	if r.From.IsZero() || !f.shutsAny(r) {
		return r.Excluded
	}
	excluded, from, until := r.Excluded, r.From, r.Until
	return func(node string) bool {
		return f.shuts(node, from, until) || excluded != nil && excluded(node)
	}
}

func (f *Fleet) shutsAny(r *Request) bool {
	for name := range f.outages {
		if f.nodes[name].Flavor == r.Flavor && f.shuts(name, r.From, r.Until) {
			return true
		}
	}
	return false
}

func (f *Fleet) shuts(node string, from, until time.Time) bool {
	w, planned := f.outages[node]
	return planned && w.Shuts(from, until)
}
