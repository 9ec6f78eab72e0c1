package book_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// A pod belongs to a Run by the scheduler's labels, which nobody else may write, whatever becomes of its references. A
// pod of before there was the label of its Run's UID belongs to the Run that controls it.
func TestMembershipTakesLabels(t *testing.T) {
	labelled := func(p *corev1.Pod) { p.Labels[rqv1.LabelRunUID] = "run-uid" }
	for name, c := range map[string]struct {
		forge func(*corev1.Pod)
		want  bool
	}{
		"pod of a Run":                 {labelled, true},
		"with its references stripped": {func(p *corev1.Pod) { labelled(p); p.OwnerReferences = nil }, true},
		"with another controller":      {func(p *corev1.Pod) { labelled(p); p.OwnerReferences[0].UID = "other" }, true},
		"with a second owner": {func(p *corev1.Pod) {
			labelled(p)
			p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{UID: "o"})
		}, true},
		"labelled, with the name of another rank": {func(p *corev1.Pod) { labelled(p); p.Name = "train-4" }, false},
		"pod of before there was the label":       {func(*corev1.Pod) {}, true},
		"labels without a reference":              {func(p *corev1.Pod) { p.OwnerReferences = nil }, false},
		"labels and a reference that does not control": {func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil },
			false},
		"reference without labels":        {func(p *corev1.Pod) { p.Labels = nil }, false},
		"reference without a Run's label": {func(p *corev1.Pod) { delete(p.Labels, rqv1.LabelRun) }, false},
		"reference without an index":      {func(p *corev1.Pod) { delete(p.Labels, rqv1.LabelIndex) }, false},
		"negative index": {func(p *corev1.Pod) {
			p.Labels[rqv1.LabelIndex], p.Name = "-1", "train--1"
		}, false},
		"enormous index": {func(p *corev1.Pod) {
			p.Labels[rqv1.LabelIndex], p.Name = "1000000", "train-1000000"
		}, false},
		"label of another Run":       {func(p *corev1.Pod) { p.Labels[rqv1.LabelRun] = "other" }, false},
		"name of another rank":       {func(p *corev1.Pod) { p.Name = "train-4" }, false},
		"controlled by another kind": {func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "Job" }, false},
		"controlled by a Run of another group": {func(p *corev1.Pod) {
			p.OwnerReferences[0].APIVersion = "example.com/v1"
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			controls := true
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Name:   "train-3",
				Labels: map[string]string{rqv1.LabelRun: "train", rqv1.LabelIndex: "3"},
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: rqv1.GroupVersion.String(), Kind: "Run", Name: "train", UID: "run-uid", Controller: &controls,
				}},
			}}
			c.forge(pod)
			run, index, ok := rank.Membership(pod)
			if ok != c.want || ok && (run != "run-uid" || index != (rank.Part{Index: 3})) {
				t.Errorf("belongs to %q as %v: %v, want %v", run, index, ok, c.want)
			}
		})
	}
}
