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

// shutOut adds to the nodes that a request excludes those with an outage while its pods would be there, but for those
// that they leave in time by an interval before it. It stays nil where there is none, so that nobody need ask about
// single nodes.
func (f *Fleet) shutOut(r *Request, leaves time.Duration) func(node string) bool {
	if r.From.IsZero() || !f.any(r, func(w outage.Window) bool { return w.ShutsMovable(r.From, r.Until, leaves) }) {
		return r.Excluded
	}
	excluded, from, until := r.Excluded, r.From, r.Until
	return func(node string) bool {
		return f.outages[node].ShutsMovable(from, until, leaves) || excluded != nil && excluded(node)
	}
}

// anyAhead reports whether there are nodes that a request's pods may use since they leave in time before an outage.
func (f *Fleet) anyAhead(r *Request) bool {
	return r.Leaves > 0 && !r.From.IsZero() && f.any(r, func(w outage.Window) bool {
		return w.Shuts(r.From, r.Until) && !w.ShutsMovable(r.From, r.Until, r.Leaves)
	})
}

// any reports whether something planned for a node of a request's flavor is as asked for.
func (f *Fleet) any(r *Request, is func(outage.Window) bool) bool {
	for name, w := range f.outages {
		if f.nodes[name].Flavor == r.Flavor && is(w) {
			return true
		}
	}
	return false
}
