package plugins

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// kind is pods of a gang that are alike for plugins: they look at the first of them.
type kind struct {
	pod    *corev1.Pod
	state  fwk.CycleState
	nodes  *fwk.PreFilterResult
	before *fwk.Status      // what PreFilter said
	by     sets.Set[string] // the plugins that left only some nodes
	rule   string           // the plugin that has turned the last node down
}

// kindOf returns the kind of a pod.
func (v *verifier) kindOf(ctx context.Context, pod *corev1.Pod) *kind {
	if i := slices.IndexFunc(v.kinds, func(k *kind) bool { return alike(k.pod, pod) }); i >= 0 {
		return v.kinds[i]
	}
	k := &kind{pod: pod, state: framework.NewCycleState()}
	k.state.Write(askingKey, askingMark{})
	k.nodes, k.before, k.by = v.plugins.RunPreFilterPlugins(ctx, k.state, pod)
	v.kinds = append(v.kinds, k)
	return k
}

// alike reports whether two pods of a gang use the same rules. The API server writes which group a pod is of into rules
// that are by group, and others may have given pods rules of their own.
func alike(x, y *corev1.Pod) bool {
	p, q := &x.Spec, &y.Spec
	return x.Labels[rqv1.LabelRole] == y.Labels[rqv1.LabelRole] && slices.Equal(claimsOf(x), claimsOf(y)) &&
		equality.Semantic.DeepEqual(p.Affinity, q.Affinity) &&
		equality.Semantic.DeepEqual(p.TopologySpreadConstraints, q.TopologySpreadConstraints) &&
		equality.Semantic.DeepEqual(p.NodeSelector, q.NodeSelector) &&
		equality.Semantic.DeepEqual(p.Tolerations, q.Tolerations)
}

// oneKind reports whether all pods of a pod's role that have been asked about are alike.
func (v *verifier) oneKind(pod *corev1.Pod) bool {
	return !slices.ContainsFunc(v.kinds, func(k *kind) bool {
		return k.pod.Labels[rqv1.LabelRole] == pod.Labels[rqv1.LabelRole] && !alike(k.pod, pod)
	})
}

// claimsOf returns the claims to volumes and devices that a pod uses: those that are made for it alone have its name.
func claimsOf(pod *corev1.Pod) []string {
	var out []string
	for i := range pod.Spec.Volumes {
		switch v := &pod.Spec.Volumes[i]; {
		case v.PersistentVolumeClaim != nil:
			out = append(out, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			out = append(out, pod.Name+"-"+v.Name)
		}
	}
	if len(pod.Spec.ResourceClaims) > 0 {
		out = append(out, pod.Name)
	}
	return out
}

// turnsDown says why a node turns a pod of the kind down; empty when it does not. It returns false where a plugin
// failed.
func (k *kind) turnsDown(ctx context.Context, plugins framework.Framework, info fwk.NodeInfo) (why string, sure bool) {
	switch {
	case k.before.IsRejected():
		return k.before.Message(), true
	case !k.before.IsSuccess():
		return "", false
	case !k.nodes.AllNodes() && !k.nodes.NodeNames.Has(info.Node().Name):
		return fmt.Sprintf("node(s) didn't satisfy plugin(s) [%s]", strings.Join(sets.List(k.by), " ")), true
	}
	status := plugins.RunFilterPlugins(ctx, k.state, k.pod, info)
	if status.IsSuccess() {
		return "", true
	}
	k.rule = status.Plugin()
	return status.Message(), status.IsRejected()
}
