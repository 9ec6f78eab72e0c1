package lifecycle

import (
	"cmp"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// newRank returns the pod of a rank: the Run's template or a pause container, with the rank's identity.
func (m *maker) newRank(index int) *corev1.Pod {
	template := &corev1.PodTemplateSpec{}
	if m.run.Spec.Template != nil {
		template = m.run.Spec.Template.DeepCopy()
	}
	withoutOurs(template.Labels)
	withoutOurs(template.Annotations) // a pod that says whose place it takes says so with the scheduler's word
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	part := rank.Part{Index: index}
	pod.Name, pod.GenerateName, pod.Namespace = part.PodName(m.run.Name), "", m.run.Namespace
	pod.Finalizers = nil // a rank whose node is lost could not be replaced until somebody takes them off
	pod.OwnerReferences = []metav1.OwnerReference{ownerOf(m.run)}
	pod.Labels = with(pod.Labels, m.labels(part))
	pod.Labels[rqv1.LabelEpoch] = "0"
	spec := &pod.Spec
	spec.SchedulerName, spec.SchedulingGates, spec.NodeName = rqv1.SchedulerName, nil, ""
	spec.RestartPolicy = cmp.Or(spec.RestartPolicy, corev1.RestartPolicyNever)
	spec.Hostname, spec.Subdomain = pod.Name, m.run.Name
	if alone(m.run, m.shape) {
		spec.Subdomain = ""
	}
	if len(spec.Containers) == 0 {
		spec.Containers = []corev1.Container{{Name: "pause", Image: m.rules.PauseImage, SecurityContext: leastPrivilege()}}
		spec.TerminationGracePeriodSeconds = new(int64)
	}
	spec.Tolerations = enduring(spec.Tolerations)
	m.rules.capGrace(spec)
	m.requestGPUs(spec)
	identity := m.identity(index)
	for i := range spec.Containers {
		spec.Containers[i].Env = withEnv(identity, spec.Containers[i].Env)
	}
	return pod
}

// withoutOurs takes out of a template's labels or annotations what only the scheduler writes. Admission refuses it; a
// Run may be older than that.
func withoutOurs(template map[string]string) {
	maps.DeleteFunc(template, func(key, _ string) bool { return strings.HasPrefix(key, rqv1.GroupName+"/") })
}

// with adds our labels or annotations to those of a template.
func with(labels, ours map[string]string) map[string]string {
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, ours)
	return labels
}

// withEnv puts variables before a container's own, which may refer to them and override them.
func withEnv(first, own []corev1.EnvVar) []corev1.EnvVar {
	set := map[string]bool{}
	for i := range own {
		set[own[i].Name] = true
	}
	var out []corev1.EnvVar
	for _, variable := range first {
		if !set[variable.Name] {
			out = append(out, variable)
		}
	}
	return append(out, own...)
}
