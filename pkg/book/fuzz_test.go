package book_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// FuzzReplacement: whatever stands in the annotation, it is read as a record or not at all, and what is read can be
// written and read again.
func FuzzReplacement(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{rqv1.AnnotationReplaces: text}}}
		first, ok := rank.ReplacementOf(pod)
		if !ok {
			return
		}
		pod.Annotations[rqv1.AnnotationReplaces] = first.Annotation()
		if second, ok := rank.ReplacementOf(pod); !ok || second != first {
			t.Errorf("%q is read as %+v, which is written as %s and read as %+v", text, first, first.Annotation(), second)
		}
	})
}

// FuzzMembership: a pod is the part of a Run that its name says, whatever its labels are, or none.
func FuzzMembership(f *testing.F) {
	f.Fuzz(func(t *testing.T, name, run, label, index, role, kind string) {
		controls := true
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name:   name,
			Labels: map[string]string{rqv1.LabelRun: label, rqv1.LabelIndex: index, rqv1.LabelRole: role},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: rqv1.GroupVersion.String(), Kind: kind, Name: run, UID: "uid", Controller: &controls},
			},
		}}
		uid, part, ok := rank.Membership(pod)
		if !ok {
			return
		}
		if uid != "uid" || kind != "Run" || label != run || part.Index < 0 || part.PodName(run) != name {
			t.Errorf("pod %q of %s %q with labels %v is part %+v", name, kind, run, pod.Labels, part)
		}
	})
}
