package group

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// writtenByControllers are labels that the controllers of groups write on all pods that they make: a rule about those
// that carry one concerns their kind alone. JobSet and LeaderWorkerSet write such rules for exclusive placement.
var writtenByControllers = []string{"jobset.sigs.k8s.io/job-key", "leaderworkerset.sigs.k8s.io/group-key"}

// ReachesOthers says that a pod requires pods of other namespaces to keep away from where it runs; empty where it does
// not. Whoever could would close a whole domain to everybody with one GPU, and no cut opens it again.
func ReachesOthers(pod *corev1.Pod) string {
	return reached(pod, func(*corev1.PodAffinityTerm) bool { return false })
}

// ReachesOut is ReachesOthers for pods that no Run made: rules that their controller writes, for what it makes itself,
// are let through.
func ReachesOut(pod *corev1.Pod) string {
	made := metav1.GetControllerOf(pod) != nil
	why := reached(pod, func(term *corev1.PodAffinityTerm) bool { return made && ofTheirKind(pod, term) })
	if why == "" {
		return ""
	}
	return why + ", or ask an administrator for foreignAntiAffinity: Allow in the scheduler's configuration"
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

func reaches(pod *corev1.Pod, term *corev1.PodAffinityTerm) bool {
	return term.NamespaceSelector != nil ||
		slices.ContainsFunc(term.Namespaces, func(space string) bool { return space != pod.Namespace })
}

// ofTheirKind reports whether a rule is about pods that carry a label which controllers write, and that the pod carries
// itself.
func ofTheirKind(pod *corev1.Pod, term *corev1.PodAffinityTerm) bool {
	if term.LabelSelector == nil {
		return false
	}
	return slices.ContainsFunc(writtenByControllers, func(label string) bool {
		_, carries := pod.Labels[label]
		_, named := term.LabelSelector.MatchLabels[label]
		return carries && (named || slices.ContainsFunc(term.LabelSelector.MatchExpressions,
			func(r metav1.LabelSelectorRequirement) bool {
				return r.Key == label && (r.Operator == metav1.LabelSelectorOpExists || r.Operator == metav1.LabelSelectorOpIn)
			}))
	})
}
