package book

import (
	"maps"
	"slices"
)

// reach is the nodes that something reaches which a gang's pods share and that is bound only once the first of them has
// its node, such as a volume in one zone: had the first pod gone to one of these. The others turned pods down then, and
// why. Its maps never change.
type reach struct {
	nodes  map[string]bool
	beyond map[string]string
}

// within returns tests for the nodes that a gang is to be planned without, one plan after the other: it lies within
// one of some reaches, in the order in which they were found, or outside of all of them. They are those of what is
// rejected anyway while nothing is known.
func within(reaches []reach, rejected func(node string) bool) []func(node string) bool {
	var out []func(string) bool
	for _, r := range reaches {
		out = append(out, func(node string) bool { return !r.nodes[node] || rejected != nil && rejected(node) })
	}
	switch {
	case len(reaches) == 0:
		return []func(string) bool{rejected}
	case len(reaches) == mostReaches:
		return out
	}
	return append(out, func(node string) bool {
		return slices.ContainsFunc(reaches, func(r reach) bool { return r.nodes[node] }) ||
			rejected != nil && rejected(node)
	})
}

// learn notes how far that reaches which the gang's pods share, if some of the nodes that turn its pods down do so for
// what others of it would have bound: that is no fact about these nodes. It returns the others. Each time that it
// learns something a plan becomes impossible that was made, so that it comes to an end.
func (c *checking) learn(check *Check, turned []Turning) []Turning {
	beyond, rest := map[string]string{}, []Turning(nil)
	for _, t := range turned {
		if t.Shared {
			beyond[t.Node] = t.Why
		} else {
			rest = append(rest, t)
		}
	}
	if len(beyond) == 0 {
		return turned
	}
	r := reach{nodes: map[string]bool{}, beyond: beyond}
	at := slices.IndexFunc(c.reaches, func(r reach) bool {
		return !slices.ContainsFunc(check.Places, func(place Place) bool { return !r.nodes[place.Node] })
	})
	known := slices.Clone(c.reaches)
	if at >= 0 { // it reaches less than it was taken to
		maps.Copy(r.nodes, known[at].nodes)
		maps.Copy(r.beyond, known[at].beyond)
		maps.DeleteFunc(r.nodes, func(node string, _ bool) bool { return beyond[node] != "" })
		known[at] = r
		c.reaches = known
		return rest
	}
	for _, node := range check.Serving {
		if beyond[node] == "" && !slices.ContainsFunc(known, func(other reach) bool { return other.nodes[node] }) {
			r.nodes[node] = true
		}
	}
	if len(r.nodes) == 0 || len(known) == mostReaches {
		return turned
	}
	c.reaches = append(known, r)
	return rest
}

// beyondFirst returns the nodes that turn pods of the gang down where what they share is bound as it was to be first,
// and why.
func (c *checking) beyondFirst() map[string]string {
	if len(c.reaches) == 0 {
		return nil
	}
	return c.reaches[0].beyond
}

// mostReaches is within how many reaches a gang is planned at most: a region has few zones, and what reaches but one of
// many nodes is not to have all of them tried.
const mostReaches = 8
