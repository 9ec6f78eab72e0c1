package group

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestWhatIsLongIsToldInFewWords: annotations may be as long as an object. What a pod is told of one is written on it,
// so that it has the beginning of what is wrong, and what mends it.
func TestWhatIsLongIsToldInFewWords(t *testing.T) {
	long := strings.Repeat("\U000E0001", 40000)
	for name, c := range map[string]struct {
		words []string
		more  []string
		want  string
	}{
		"an owner":     {[]string{rqv1.AnnotationOwner + "!", long}, nil, "which is not an owner"},
		"a duration":   {[]string{rqv1.AnnotationMaxDuration + "!", long}, nil, "which is not a duration"},
		"a number":     {[]string{rqv1.AnnotationSpares + "!", long}, nil, "which is not a number"},
		"a group":      {[]string{rqv1.AnnotationGroup + "!", long}, nil, "253 at most"},
		"another type": {[]string{rqv1.AnnotationGPUType + "!", long}, nil, "and the fleet has"},
		"a size": {[]string{rqv1.AnnotationGroup + "!", "g", rqv1.AnnotationGroupSize + "!", long}, nil,
			"not a number of pods"},
		"two owners": {[]string{rqv1.AnnotationOwner + "!", long, rqv1.AnnotationGroup + "!", "g"},
			[]string{rqv1.AnnotationOwner + "!", "org:other", rqv1.AnnotationGroup + "!", "g",
				rqv1.AnnotationGroupSize + "!", "2"}, "must say the same"},
	} {
		t.Run(name, func(t *testing.T) {
			words := append([]string{rqv1.AnnotationOwner + "!", "org:team"}, c.words...)
			pods := []*corev1.Pod{podOf("a", 8, words...)}
			if c.more != nil {
				pods = append(pods, podOf("b", 8, c.more...))
			}
			d := Derive(&Observed{Rules: testRules, Key: Of(pods[0]).Key, Pods: pods, Types: []string{"H100"}})
			if d.Spec != nil || !strings.Contains(d.Problem, c.want) || len(d.Problem) > 3000 {
				t.Errorf("it is told, in %d letters: %.300s", len(d.Problem), d.Problem)
			}
		})
	}
}

// TestReferencesThatNameNothing are to objects that there cannot be: nobody asks for them, and nothing is told of them.
func TestReferencesThatNameNothing(t *testing.T) {
	long := strings.Repeat("a", 300)
	for _, by := range []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: long},
		{APIVersion: "batch/v1", Kind: long, Name: "a"}, {APIVersion: long, Kind: "Job", Name: "a"},
		{APIVersion: "batch/v1", Kind: "Job", Name: "../a"}} {
		if Names(&by) {
			t.Errorf("%.100v names an object", by)
		}
	}
	if !Names(&metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "train"}) {
		t.Error("a Job's name is none")
	}
}
