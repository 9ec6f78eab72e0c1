package plugins

import (
	"context"
	"slices"

	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/davidlangworthy/jobtree/pkg/book"
)

// reservation is a place that plugins count on while others are asked about.
type reservation struct {
	*kind
	book.Place
}

// reserve has plugins count on where a pod goes that is the first to use some volumes or devices, as in its own cycle:
// from then on those are bound to what its node reaches. Other pods that use them are asked about anew. It returns
// false if that failed.
func (v *verifier) reserve(ctx context.Context, k *kind, place book.Place) bool {
	var first []string
	for _, claim := range claimsOf(place.Pod) {
		if !v.claims[claim] {
			first = append(first, claim)
		}
	}
	if len(first) == 0 {
		return true
	}
	if v.claims == nil {
		v.claims = map[string]bool{}
	}
	for _, claim := range first {
		v.claims[claim] = true
	}
	v.reserved = append(v.reserved, reservation{k, place})
	v.kinds = slices.DeleteFunc(v.kinds, func(other *kind) bool {
		return slices.ContainsFunc(claimsOf(other.pod), func(claim string) bool { return slices.Contains(first, claim) })
	})
	return v.plugins.RunReservePluginsReserve(ctx, k.state, place.Pod, place.Node).IsSuccess()
}

// unreserve has plugins count on nothing any more.
func (v *verifier) unreserve(ctx context.Context) {
	for _, r := range slices.Backward(v.reserved) {
		v.plugins.RunReservePluginsUnreserve(ctx, r.state, r.Pod, r.Node)
	}
	v.reserved, v.claims = nil, nil
}

// bindsElsewhere finds, for a kind that a node has just turned down, all nodes that do not reach the volumes and
// devices which other pods of the gang are about to have bound: one by one they would take a round each.
func (v *verifier) bindsElsewhere(ctx context.Context, check *book.Check, k *kind) {
	rule := k.rule
	shares := slices.ContainsFunc(claimsOf(k.pod), func(claim string) bool { return v.claims[claim] })
	if v.seats || k.around || !shares || rule != names.VolumeBinding && rule != names.DynamicResources {
		return
	}
	k.around = true
	for _, name := range check.Nodes {
		if v.over() {
			return
		}
		info, err := v.snapshot.NodeInfos().Get(name)
		if err != nil || info.Node() == nil || !v.knows(info.Node()) {
			continue
		}
		if why, sure := k.turnsDown(ctx, v.plugins, info); sure && why != "" && k.rule == rule {
			v.turn(book.Place{Pod: k.pod, Node: name}, why)
		}
	}
}
