package plugins

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/rank"
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
	for _, claim := range rank.ClaimsOf(place.Pod) {
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
		return slices.ContainsFunc(rank.ClaimsOf(other.pod), func(claim string) bool { return slices.Contains(first, claim) })
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

// sharesUnbound reports whether a pod uses a volume that others of the gang are about to have bound.
func (v *verifier) sharesUnbound(pod *corev1.Pod) bool {
	claims := v.plugins.SharedInformerFactory().Core().V1().PersistentVolumeClaims().Lister()
	return !v.seats && slices.ContainsFunc(rank.ClaimsOf(pod), func(name string) bool {
		if !v.claims[name] {
			return false
		}
		claim, err := claims.PersistentVolumeClaims(pod.Namespace).Get(name)
		return err == nil && claim.Spec.VolumeName == ""
	})
}

// bindsElsewhere finds, for a kind that a node has just turned down, all nodes that do not reach the volumes and
// devices which other pods of the gang use: one by one they would take a round each. Of volumes that these are about to
// have bound it finds them whether they have room or not: what is bound elsewhere reaches others.
func (v *verifier) bindsElsewhere(ctx context.Context, check *book.Check, k *kind, unbound bool) {
	rule, nodes := k.rule, check.Nodes
	shares := slices.ContainsFunc(rank.ClaimsOf(k.pod), func(claim string) bool { return v.claims[claim] })
	if v.seats || k.around || !shares || rule != names.VolumeBinding && rule != names.DynamicResources {
		return
	}
	k.around = true
	by := k
	if unbound {
		nodes, by = check.Serving, (&verifier{plugins: v.plugins}).kindOf(ctx, bare(k.pod))
	}
	for _, name := range nodes {
		if v.over() {
			return
		}
		info, err := v.snapshot.NodeInfos().Get(name)
		if err != nil || info.Node() == nil || !v.knows(info.Node()) {
			continue
		}
		if why, sure := by.turnsDown(ctx, v.plugins, info); sure && why != "" && by.rule == rule {
			v.turn(book.Turning{Pod: k.pod.UID, Node: name, Why: why, Shared: unbound})
		}
	}
}

// bare returns a pod that uses the volumes and devices of another, asks for nothing else and goes anywhere.
func bare(pod *corev1.Pod) *corev1.Pod {
	out := pod.DeepCopy()
	s := &out.Spec
	s.Affinity, s.NodeSelector, s.TopologySpreadConstraints, s.Resources = nil, nil, nil, nil
	s.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	for _, containers := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range containers {
			containers[i].Resources, containers[i].Ports = corev1.ResourceRequirements{}, nil
		}
	}
	return out
}
