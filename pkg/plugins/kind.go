package plugins

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	resourcehelper "k8s.io/component-helpers/resource"
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
	around bool             // all nodes have been looked at that turn it down for what others have bound
	// counted is what PreFilter has found of pods that are to be spread over nodes, and since who has been accepted
	// after it, by where; nil for others.
	counted fwk.CycleState
	since   map[domain][]accepted
}

// alike reports whether two pods of a gang use the same rules. The API server writes which group a pod is of into rules
// that are by group, and others may have given pods rules of their own.
func alike(x, y *corev1.Pod) bool {
	p, q := &x.Spec, &y.Spec
	return x.Labels[rqv1.LabelRole] == y.Labels[rqv1.LabelRole] && slices.Equal(claimsOf(x), claimsOf(y)) &&
		equality.Semantic.DeepEqual(p.Affinity, q.Affinity) &&
		equality.Semantic.DeepEqual(p.TopologySpreadConstraints, q.TopologySpreadConstraints) &&
		equality.Semantic.DeepEqual(p.NodeSelector, q.NodeSelector) &&
		equality.Semantic.DeepEqual(p.Tolerations, q.Tolerations) && sameRequests(x, y) &&
		slices.Equal(portsOf(x), portsOf(y)) && maps.Equal(labelsOf(x), labelsOf(y))
}

// sameRequests reports whether two pods ask for the same of a node, overhead included.
func sameRequests(x, y *corev1.Pod) bool {
	all := resourcehelper.PodResourcesOptions{}
	return equality.Semantic.DeepEqual(resourcehelper.PodRequests(x, all), resourcehelper.PodRequests(y, all))
}

// portsOf returns the ports of the node that a pod asks for.
func portsOf(pod *corev1.Pod) []corev1.ContainerPort {
	var out []corev1.ContainerPort
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, p := range c.Ports {
			if p.HostPort > 0 {
				out = append(out, p)
			}
		}
	}
	return out
}

// labelsOf returns the labels of a pod that rules of others may be about: all but those that number the pods of a gang,
// which differ in each.
func labelsOf(pod *corev1.Pod) map[string]string {
	out := maps.Clone(pod.Labels)
	maps.DeleteFunc(out, func(key, _ string) bool {
		return strings.HasSuffix(key, "index") || strings.HasSuffix(key, "pod-name") || key == rqv1.LabelCohort
	})
	return out
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
	k.rule = ""
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

// askingMark marks the state of a cycle in which the other plugins alone are asked.
type askingMark struct{}

// Clone returns the mark.
func (m askingMark) Clone() fwk.StateData { return m }

const askingKey fwk.StateKey = Name + "/asking"

func asking(state fwk.CycleState) bool {
	if state == nil {
		return false
	}
	_, err := state.Read(askingKey)
	return err == nil
}
