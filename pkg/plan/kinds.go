package plan

import (
	"cmp"
	"slices"

	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// Kind is pods of a gang that are alike in which nodes they may use, and in what they ask for of these beside GPUs.
type Kind struct {
	// Pod is the name of one of them, and Says what they say of nodes.
	Pod    string
	Says   string
	Beside *topology.Amounts
	// Barred is a test for the nodes that they may not use, beside those that no pod of the gang may; it may be nil.
	Barred func(node string) bool
	// Nodes are the others by name, and Domains these by the domains that they lie in.
	Nodes   []string
	Domains map[string][]string
}

// Alike returns missing pods as if they did not differ.
func Alike(missing []Missing) []Missing {
	out := slices.Clone(missing)
	for i := range out {
		out[i].Kind = nil
	}
	return out
}

// ofKind is the missing pods of one kind.
type ofKind struct {
	*Kind
	missing []Missing
}

// byKind returns missing pods by their kinds: those first that may use the fewest nodes.
func byKind(missing []Missing) (out []ofKind) {
	for _, m := range missing {
		if m.Kind == nil {
			return nil
		}
		at := slices.IndexFunc(out, func(k ofKind) bool { return k.Kind == m.Kind })
		if at < 0 {
			at, out = len(out), append(out, ofKind{Kind: m.Kind})
		}
		out[at].missing = append(out[at].missing, m)
	}
	slices.SortStableFunc(out, func(a, b ofKind) int { return cmp.Compare(len(a.Nodes), len(b.Nodes)) })
	return out
}

// Either returns a test for what one of two tests holds for, of which each may be nil.
func Either(a, b func(node string) bool) func(node string) bool {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(node string) bool { return a(node) || b(node) }
}
