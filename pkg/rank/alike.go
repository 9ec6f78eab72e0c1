package rank

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	resourcehelper "k8s.io/component-helpers/resource"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Alike reports whether two pods of a gang use the same rules. The API server writes which group a pod is of into rules
// that are by group, and others may have given pods rules of their own.
func Alike(x, y *corev1.Pod) bool {
	p, q := &x.Spec, &y.Spec
	return x.Labels[rqv1.LabelRole] == y.Labels[rqv1.LabelRole] && slices.Equal(ClaimsOf(x), ClaimsOf(y)) &&
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

// ClaimsOf returns the claims to volumes and devices that a pod uses: those that are made for it alone have its name.
func ClaimsOf(pod *corev1.Pod) []string {
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
