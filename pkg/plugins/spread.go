package plugins

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/davidlangworthy/jobtree/pkg/book"
)

// arrange finds nodes for a start where the rules accept its pods one after the other, if they are to be spread. How
// many a node may have hangs on where the others are, so that kube-scheduler's own order decides: it places one pod
// after the other. It returns nil where that comes to nothing.
func (v *verifier) arrange(ctx context.Context, check *book.Check) []string {
	anew := &verifier{plugins: v.plugins, snapshot: v.snapshot, knows: v.knows, over: v.over}
	leaving := map[string][]types.UID{}
	maps.Copy(leaving, check.Leaving)
	for node, spot := range check.Spots {
		leaving[node] = slices.Concat(leaving[node], spot.Shards)
	}
	restore, ok := anew.without(ctx, leaving)
	defer restore()
	if !ok {
		return nil
	}
	return check.Arrange(func(place book.Place) book.Verdict {
		accepted := len(anew.accepted)
		switch {
		case anew.over() || !anew.put(ctx, check, place, false):
			return book.Unknown
		case len(anew.accepted) > accepted:
			return book.Accepted
		case anew.kindOf(ctx, place.Pod).rule == names.PodTopologySpread:
			return book.Skewed
		}
		return book.Refused
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
		if !status.IsSuccess() && status.Plugin() == names.PodTopologySpread {
			return false
		}
	}
	return true
}
