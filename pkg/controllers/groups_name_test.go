package controllers

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestAPodOfTheNameThatAnotherMakes is another group: it has neither the place in line nor the payer of the one before,
// which a StatefulSet that was made smaller has left behind.
func TestAPodOfTheNameThatAnotherMakes(t *testing.T) {
	controls := true
	for name, by := range map[string][]metav1.OwnerReference{
		"by hand":           nil,
		"by another's kind": {{APIVersion: "batch/v1", Kind: "Task", Name: "web", UID: "task", Controller: &controls}},
		"by another's name": {{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "x", UID: "x", Controller: &controls}},
		"by one made anew":  {{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "anew", Controller: &controls}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGrouped(t)
			g.named("o")
			was, is := foreign("web-0", "8"), foreign("web-0", "8")
			was.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "set",
				Controller: &controls}}
			is.UID, is.OwnerReferences = "another", by
			g.groups.note(was)
			g.want("it is new", was, "create")
			g.starts()
			g.groups.drop(was)
			g.groups.note(is)
			g.want("another has its name", is, "delete")
			g.want("which was seen", is, "create")
		})
	}
}

// TestAPodThatRunsKeepsItsRun when its StatefulSet is replaced and leaves it to the next.
func TestAPodThatRunsKeepsItsRun(t *testing.T) {
	g, controls := newGrouped(t), true
	g.named("o")
	pod := foreign("web-0", "8")
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "set",
		Controller: &controls}}
	g.groups.note(pod)
	g.want("it is new", pod, "create")
	g.starts()
	run := g.run()
	pod = pod.DeepCopy()
	pod.Labels = map[string]string{rqv1.LabelRun: run.Name, rqv1.LabelRunUID: string(run.UID), rqv1.LabelIndex: "0",
		rqv1.LabelSource: string(rqv1.SourcePods)}
	pod.Spec.NodeName = "n0"
	if err := g.kube.Tracker().Add(pod); err != nil {
		t.Fatal(err)
	}
	for what, by := range map[string][]metav1.OwnerReference{
		"nobody controls it": nil,
		"the next does":      {{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "anew", Controller: &controls}},
	} {
		pod = pod.DeepCopy()
		pod.OwnerReferences = by
		if _, err := g.kube.CoreV1().Pods("ns").Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		g.groups.note(pod)
		g.want(what, pod)
	}
}
