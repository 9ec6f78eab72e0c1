package plugins

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/davidlangworthy/jobtree/pkg/book"
)

// arrange finds nodes for a gang where the rules accept its pods one after the other, if they are to be spread, perhaps
// with those gone who may be cut for it. How many a node may have hangs on where the others are, so that the order
// decides in which kube-scheduler places them. Where that comes to nothing beside all opportunistic pods it is tried
// without them. It returns nil where nothing does.
func (v *verifier) arrange(ctx context.Context, check *book.Check, clear bool) []string {
	cleared, vacated, shards := map[string][]types.UID{}, map[string][]types.UID{}, false
	maps.Copy(cleared, check.Leaving)
	for node, spot := range check.Spots {
		if clear {
			cleared[node] = slices.Concat(cleared[node], spot.Tenants)
		}
	}
	maps.Copy(vacated, cleared)
	for node, spot := range check.Spots {
		if len(spot.Shards) > 0 {
			vacated[node], shards = slices.Concat(vacated[node], spot.Shards), true
		}
	}
	for _, leaving := range []map[string][]types.UID{cleared, vacated} {
		for _, manner := range book.Manners {
			if nodes := v.arrangeWithout(ctx, check, leaving, manner, clear); nodes != nil {
				return nodes
			}
		}
		if !shards {
			break
		}
	}
	return nil
}

// arrangeWithout arranges the pods of a gang with others gone.
func (v *verifier) arrangeWithout(ctx context.Context, check *book.Check, leaving map[string][]types.UID,
	manner book.Manner, clear bool) []string {
	anew := &verifier{plugins: v.plugins, snapshot: v.snapshot, knows: v.knows, over: v.over}
	restore, ok := anew.without(ctx, leaving)
	defer restore()
	if !ok {
		check.Unlaid = true
		return nil
	}
	unseen := false
	nodes := check.Arrange(manner, clear, func(place book.Place) book.Verdict {
		accepted := len(anew.accepted)
		switch {
		case !anew.sees(place.Node):
			unseen = true
			return book.Refused
		case anew.over() || !anew.put(ctx, check, place, false):
			return book.Unknown
		case len(anew.accepted) > accepted:
			return book.Accepted
		case anew.kindOf(ctx, place.Pod).rule == names.PodTopologySpread:
			return book.Skewed
		}
		return book.Refused
	})
	check.Unlaid = check.Unlaid || unseen && nodes == nil
	return nodes
}

// sees reports whether the scheduler has a node as the book has it.
func (v *verifier) sees(node string) bool {
	info, err := v.snapshot.NodeInfos().Get(node)
	return err == nil && info.Node() != nil && v.knows(info.Node())
}

// selectsAll reports whether pods of a kind are to be spread among all others. Of these PodTopologySpread counts those
// alone that come after PreFilter.
func (k *kind) selectsAll() bool {
	return slices.ContainsFunc(k.pod.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.LabelSelector != nil && len(c.LabelSelector.MatchLabels)+len(c.LabelSelector.MatchExpressions) == 0
	})
}

// domain is the nodes with one value of a label.
type domain struct{ key, value string }

// accepted is a pod of a gang that has been put on a node.
type accepted struct {
	pod fwk.PodInfo
	on  fwk.NodeInfo
}

// note has a pod count that is to be beside those of a kind.
func (k *kind) note(pod fwk.PodInfo, on fwk.NodeInfo) {
	if k.counted == nil {
		return
	}
	for _, key := range book.SpreadKeys(k.pod) {
		d := domain{key, on.Node().Labels[key]}
		k.since[d] = append(k.since[d], accepted{pod, on})
	}
}

// surelyEven reports whether a node that accepts a pod of a kind does so for certain. Of the domains over which pods
// are spread PodTopologySpread keeps the two that have the least, so that it may not know who has the least once pods
// have come to several. It does while they have come to one alone: so the node is looked at as if pods had come to its
// own domains alone, by which it takes no more than it may.
func (k *kind) surelyEven(ctx context.Context, plugins framework.Framework, on fwk.NodeInfo) bool {
	for d := range k.since {
		if on.Node().Labels[d.key] != d.value {
			return k.evenAlone(ctx, plugins, on)
		}
	}
	return true
}

func (k *kind) evenAlone(ctx context.Context, plugins framework.Framework, on fwk.NodeInfo) bool {
	for _, key := range book.SpreadKeys(k.pod) {
		came := k.since[domain{key, on.Node().Labels[key]}]
		for _, a := range came {
			plugins.RunPreFilterExtensionAddPod(ctx, k.counted, k.pod, a.pod, a.on)
		}
		status := plugins.RunFilterPlugins(ctx, k.counted, k.pod, on)
		for _, a := range came {
			plugins.RunPreFilterExtensionRemovePod(ctx, k.counted, k.pod, a.pod, a.on)
		}
		if !status.IsSuccess() {
			return false // another rule may be, which looks at those that have come elsewhere
		}
	}
	return true
}
