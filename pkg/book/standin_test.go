package book_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// byGroup has pods be near those of their group, by what the API server is to read from their labels.
func byGroup(s *rqv1.RunSpec) {
	s.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "main", Image: "main"}},
		Affinity: &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "rack",
				LabelSelector:  &metav1.LabelSelector{MatchLabels: map[string]string{"app": "train"}},
				MatchLabelKeys: []string{rqv1.LabelGroupIndex}}}}},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{TopologyKey: "rack", MaxSkew: 1,
			WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{},
			MatchLabelKeys: []string{rqv1.LabelGroupIndex}}},
	}}
}

// admitted is a pod as the API server stores it: with the values of its labels in what is by label.
func admitted(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	of := func(s *metav1.LabelSelector) {
		s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{Key: rqv1.LabelGroupIndex,
			Operator: metav1.LabelSelectorOpIn, Values: []string{pod.Labels[rqv1.LabelGroupIndex]}})
	}
	of(pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector)
	of(pod.Spec.TopologySpreadConstraints[0].LabelSelector)
	return pod
}

// Other rules are asked about a pod that has not been made by the rules of its own group, not by its leader's.
func TestAStandInHasTheRulesOfItsGroup(t *testing.T) {
	tell(t, func(w *world) {
		w.Book.AskRules()
		w.fleet("d0", 2)
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run0", "org:a", 2, 2, 2, 0, byGroup)
		w.reconcile("run0")
		lead := w.pod("run0-0")
		w.SetPod(admitted(w.Pods[lead]))
		w.Book.Place(lead, w.Now)
		check := w.Book.Check(w.Runs["run0"].UID, w.Now)
		if check == nil || len(check.Places) != 4 {
			w.t.Fatalf("it is asked about %+v", check)
		}
		for _, place := range check.Places {
			spec, group := &place.Pod.Spec, place.Pod.Labels[rqv1.LabelGroupIndex]
			for what, s := range map[string]*metav1.LabelSelector{
				"is near":     spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector,
				"is apart of": spec.TopologySpreadConstraints[0].LabelSelector,
			} {
				if got := s.MatchExpressions[0].Values[0]; got != group {
					w.t.Errorf("%s of group %s %s group %s", place.Pod.Name, group, what, got)
				}
			}
		}
		if got := w.Pods[lead].Spec.TopologySpreadConstraints[0].LabelSelector.MatchExpressions[0].Values[0]; got != "0" {
			w.t.Errorf("the leader is of group %s", got)
		}
		if w.t.Failed() {
			w.t.FailNow()
		}
	})
}

// scratch gives each pod a volume and a device of its own, which are made once it is.
func scratch(s *rqv1.RunSpec) {
	template := "nic"
	s.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "main", Image: "main"}},
		Volumes: []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{
			Ephemeral: &corev1.EphemeralVolumeSource{}}},
			{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}},
		ResourceClaims: []corev1.PodResourceClaim{{Name: "nic", ResourceClaimTemplateName: &template}},
	}}
}

// Other rules are not asked about volumes and devices that are made only once their pods are, but for the leader's:
// all nodes would turn them down.
func TestAStandInHasNothingThatIsMadeForItsPod(t *testing.T) {
	tell(t, func(w *world) {
		w.Book.AskRules()
		w.fleet("d0", 2)
		w.setBudget("a", "org:a", 64)
		w.submitWithSpares("run0", "org:a", 1, 2, 2, 0, scratch)
		w.reconcile("run0")
		w.Book.Place(w.pod("run0-0"), w.Now)
		check := w.Book.Check(w.Runs["run0"].UID, w.Now)
		if check == nil || len(check.Places) != 2 {
			w.t.Fatalf("it is asked about %+v", check)
		}
		for _, place := range check.Places {
			_, part, _ := rank.Membership(place.Pod)
			own, claims := 2, 1
			if part.Index > 0 {
				own, claims = 1, 0
			}
			if v, c := len(place.Pod.Spec.Volumes), len(place.Pod.Spec.ResourceClaims); v != own || c != claims {
				w.t.Fatalf("%s has %d volumes and %d claims", place.Pod.Name, v, c)
			}
		}
	})
}
