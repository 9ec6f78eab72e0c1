package group

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// labelJobKey is what JobSet writes on a Job and its pods, one value for each Job. For exclusive placement it has a pod
// of the Job keep those of all other Jobs of JobSets away, in any namespace. LeaderWorkerSet's rules for that stay in
// the pods' own.
const labelJobKey = "jobset.sigs.k8s.io/job-key"

// ReachesOthers says that a pod requires pods of other namespaces to keep away from where it runs; empty where it does
// not. Whoever could would close a whole domain to everybody with one GPU, and no cut opens it again.
func ReachesOthers(pod *corev1.Pod) string {
	return reached(pod, func(*corev1.PodAffinityTerm) bool { return false })
}

// ReachesOut is ReachesOthers for pods that no Run made: rules that JobSet writes, for pods of its kind, are let
// through. Whether a JobSet has made a pod is to be read: ExclusiveJob.
func ReachesOut(pod *corev1.Pod) string {
	return orAllow(reached(pod, func(term *corev1.PodAffinityTerm) bool { return excludes(pod, term) }))
}

// ReachesOutOfNoJobSet is ReachesOut for pods that no JobSet has made.
func ReachesOutOfNoJobSet(pod *corev1.Pod) string { return orAllow(ReachesOthers(pod)) }

// orAllow adds to why a pod that no Run made is held back what else would let it through.
func orAllow(why string) string {
	if why == "" {
		return ""
	}
	return why + ", or ask an administrator for foreignAntiAffinity: Allow in the scheduler's configuration"
}

// ExclusiveJob returns the Job that is to be one of a JobSet, with JobKey as the pod has it, for rules of the pod to be
// let through; nil where none depends on it.
func ExclusiveJob(pod *corev1.Pod) *metav1.OwnerReference {
	for _, term := range requiredApart(pod) {
		if reaches(pod, &term) && excludes(pod, &term) {
			return metav1.GetControllerOfNoCopy(pod)
		}
	}
	return nil
}

// JobKey returns what JobSet writes on an object for all pods of a Job.
func JobKey(object metav1.Object) string { return object.GetLabels()[labelJobKey] }

// IsJobSet reports whether a reference is to a JobSet.
func IsJobSet(by *metav1.OwnerReference) bool {
	of := MadeFor("", by)
	return of.API == "jobset.x-k8s.io" && of.Kind == "JobSet"
}

// reached says of a pod by which of its rules it does so, but for some.
func reached(pod *corev1.Pod, but func(*corev1.PodAffinityTerm) bool) string {
	for _, term := range requiredApart(pod) {
		if reaches(pod, &term) && !but(&term) {
			return fmt.Sprintf("pod %s requires pods of other namespaces to keep away (podAntiAffinity with "+
				"topologyKey %s and namespaceSelector or namespaces): name pods of its own namespace only", pod.Name,
				term.TopologyKey)
		}
	}
	return ""
}

func requiredApart(pod *corev1.Pod) []corev1.PodAffinityTerm {
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		return a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

// SameApart reports whether two pods require the same pods to keep away from where they run.
func SameApart(a, b *corev1.Pod) bool {
	return equality.Semantic.DeepEqual(requiredApart(a), requiredApart(b))
}

func reaches(pod *corev1.Pod, term *corev1.PodAffinityTerm) bool {
	return term.NamespaceSelector != nil ||
		slices.ContainsFunc(term.Namespaces, func(space string) bool { return space != pod.Namespace })
}

// excludes reports whether a rule of a pod that a Job made has the form that JobSet writes: it is about the pods of all
// other Jobs of JobSets, or some of them, and not about certain ones.
func excludes(pod *corev1.Pod, term *corev1.PodAffinityTerm) bool {
	by, key := metav1.GetControllerOfNoCopy(pod), JobKey(pod)
	if by == nil || key == "" || term.LabelSelector == nil {
		return false
	}
	of := MadeFor("", by)
	says := func(operator metav1.LabelSelectorOperator, is func(values []string) bool) bool {
		return slices.ContainsFunc(term.LabelSelector.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool {
			return r.Key == labelJobKey && r.Operator == operator && is(r.Values)
		})
	}
	return of.API == "batch" && of.Kind == "Job" &&
		says(metav1.LabelSelectorOpExists, func([]string) bool { return true }) &&
		says(metav1.LabelSelectorOpNotIn, func(values []string) bool { return slices.Equal(values, []string{key}) })
}
