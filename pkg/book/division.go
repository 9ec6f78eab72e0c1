package book

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// division is the nodes by their values of the labels over which some pods are spread.
type division struct {
	of   map[*seatable]*part
	rows []*row
}

// part is the nodes with one value, or one of each label.
type part struct {
	pods int
	rows map[string]*row
}

// row is the nodes of a part in one domain that have room for one more pod, the first of them at least, in the order in
// which they are filled.
type row struct {
	*part
	name, domain string

	nodes []*seatable
	tried int // the last pod, counted from 1, that has been tried here
}

// divide returns the nodes as a pod is spread over them.
func (a *arrangement) divide(pod *corev1.Pod) *division {
	keys := SpreadKeys(pod)
	by := strings.Join(keys, ",")
	if d := a.divisions[by]; d != nil {
		return d
	}
	d, parts := &division{of: map[*seatable]*part{}}, map[string]*part{}
	for _, node := range a.nodes {
		values := make([]string, 0, len(keys))
		for _, key := range keys {
			values = append(values, node.Labels[key])
		}
		name := strings.Join(values, ",")
		p := parts[name]
		if p == nil {
			p = &part{rows: map[string]*row{}}
			parts[name] = p
		}
		r := p.rows[node.Domain]
		if r == nil {
			r = &row{part: p, name: name, domain: node.Domain}
			p.rows[node.Domain], d.rows = r, append(d.rows, r)
		}
		r.nodes, d.of[node], p.pods = append(r.nodes, node), p, p.pods+node.pods
	}
	slices.SortFunc(d.rows, func(x, y *row) int {
		return cmp.Or(strings.Compare(x.name, y.name), strings.Compare(x.domain, y.domain))
	})
	for _, r := range d.rows {
		slices.SortFunc(r.nodes, func(x, y *seatable) int {
			return cmp.Or(cmp.Compare(x.Avoid, y.Avoid), cmp.Compare(x.Pods, y.Pods), strings.Compare(x.name, y.name))
		})
	}
	a.divisions[by] = d
	return d
}

// next returns the row, in some domains, that a pod is to try of those with room that it has not: the one whose first
// node is the least to be avoided, and of several the one whose part has the fewest pods, or the other way round.
func (d *division) next(in func(domain string) bool, nth int, evenly bool) (best *row) {
	for _, r := range d.rows {
		for len(r.nodes) > 0 && r.nodes[0].pods >= r.nodes[0].Pods {
			r.nodes = r.nodes[1:]
		}
		if r.tried == nth || len(r.nodes) == 0 || !in(r.domain) {
			continue
		}
		if best == nil {
			best = r
			continue
		}
		fewer, better := cmp.Compare(r.pods, best.pods), cmp.Compare(r.nodes[0].Avoid, best.nodes[0].Avoid)
		if !evenly {
			fewer = cmp.Or(cmp.Compare(r.nodes[0].Avoid&^isUnplanned, best.nodes[0].Avoid&^isUnplanned), fewer)
		}
		if cmp.Or(fewer, better) < 0 {
			best = r
		}
	}
	return best
}

// kindOf returns which kind a pod is of, by what rules say of nodes of their own accord; below 0 where these may accept
// it once others are there, and where there are too many kinds.
func (a *arrangement) kindOf(pod *corev1.Pod) int {
	if of := pod.Spec.Affinity; of != nil && of.PodAffinity != nil {
		return -1
	}
	at := slices.IndexFunc(a.kinds, func(k *corev1.Pod) bool { return rank.Alike(k, pod) })
	if at < 0 && len(a.kinds) < mostKinds {
		at = len(a.kinds)
		a.kinds = append(a.kinds, pod)
	}
	return at
}
