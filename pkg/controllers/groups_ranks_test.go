package controllers

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestNoPodIsOfferedWhileOneIsNotSeenWithItsRank: the informer of ranks may be behind the scheduler's own, and another
// pod would get the same rank.
func TestNoPodIsOfferedWhileOneIsNotSeenWithItsRank(t *testing.T) {
	g := newGrouped(t)
	g.named("o")
	pods := []*corev1.Pod{foreign("a", "8"), foreign("b", "8")}
	for _, pod := range pods {
		pod.Annotations = map[string]string{rqv1.AnnotationGroup: "g", rqv1.AnnotationGroupSize: "1"}
		g.groups.note(pod)
	}
	g.want("it is new", pods[0], "create")
	g.want("nothing has changed", pods[0])
	run, ranked := g.run(), pods[0].DeepCopy()
	if offers, _ := g.groups.offers(run); len(offers) != 2 {
		t.Fatalf("%d pods are offered", len(offers))
	}
	ranked.Labels = map[string]string{rqv1.LabelRun: run.Name, rqv1.LabelRunUID: string(run.UID),
		rqv1.LabelSource: string(rqv1.SourcePods)}
	g.groups.note(ranked)
	if offers, _ := g.groups.offers(run); len(offers) != 0 {
		t.Errorf("%d pods are offered, and nobody knows which rank is taken", len(offers))
	}
	if err := g.watches.pods.GetStore().Add(ranked); err != nil {
		t.Fatal(err)
	}
	if offers, _ := g.groups.offers(run); len(offers) != 1 {
		t.Errorf("%d pods are offered once it is seen", len(offers))
	}
}

// TestAPodTooManyIsTold: a group that has started takes no more pods than it has ranks, until one of them ends.
func TestAPodTooManyIsTold(t *testing.T) {
	g := newGrouped(t)
	g.named("o")
	pods := []*corev1.Pod{foreign("a", "8"), foreign("b", "8")}
	for _, pod := range pods {
		pod.Annotations = map[string]string{rqv1.AnnotationGroup: "g", rqv1.AnnotationGroupSize: "1"}
	}
	g.groups.note(pods[0])
	g.want("it is new", pods[0], "create")
	run, ranked := g.run(), pods[0].DeepCopy()
	run.Status.Phase, run.Status.Width = rqv1.RunRunning, &rqv1.RunWidth{Granted: 8}
	if err := g.kinds.Status().Update(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	ranked.Labels = map[string]string{rqv1.LabelRun: run.Name, rqv1.LabelRunUID: string(run.UID),
		rqv1.LabelSource: string(rqv1.SourcePods)}
	ranked.Spec.NodeName = "n0"
	g.groups.note(ranked)
	g.groups.note(pods[1])
	g.looksWith(ranked)
	if why := g.book.Foreign(pods[1]); why == nil || !strings.Contains(why.Message, "started with 1 pods") {
		t.Errorf("it is told %v", why)
	}
	if reason, _ := g.book.RefusedFor(pods[1].UID); reason != "NotItsTurn" {
		t.Errorf("it is told so as %q", reason)
	}
	ended := ranked.DeepCopy()
	ended.Status.Phase = corev1.PodSucceeded
	g.looksWith(ended)
	if _, why := g.book.RefusedFor(pods[1].UID); why != "" || g.book.HoldsBack(pods[1]) == "" {
		t.Errorf("it is not held back until it has the rank of the one that has ended: %q", why)
	}
}

// TestAGroupWhosePodsAreToldToGo has not ended, although their kubelet says so of them before they are gone: one that
// is cut waits again, also where nobody but its user makes its pods.
func TestAGroupWhosePodsAreToldToGo(t *testing.T) {
	for _, phase := range []corev1.PodPhase{corev1.PodFailed, corev1.PodSucceeded} {
		g := newGrouped(t)
		g.named("o")
		pod := foreign("w", "8")
		g.groups.note(pod)
		g.want("it is new", pod, "create")
		g.see()
		run := g.run()
		g.groups.drop(pod)
		told := pod.DeepCopy()
		told.Labels = map[string]string{rqv1.LabelRun: run.Name, rqv1.LabelRunUID: string(run.UID),
			rqv1.LabelSource: string(rqv1.SourcePods)}
		told.Spec.NodeName, told.Status.Phase = "n0", phase
		told.DeletionTimestamp = &metav1.Time{Time: g.clock.Now()}
		g.looksWith(told)
		if _, end := g.groups.offers(run); end != "" {
			t.Errorf("it has ended as %q since its pod, which was told to go, is %s", end, phase)
		}
	}
}

// TestAPodThatNeverRunsKeepsNoRun: once it is deleted without a node its Run goes, whatever keeps the pod's object.
func TestAPodThatNeverRunsKeepsNoRun(t *testing.T) {
	g := newGrouped(t)
	g.named("o")
	pod := foreign("w", "8")
	g.groups.note(pod)
	g.want("it is new", pod, "create")
	g.see()
	run := g.run()
	g.groups.drop(pod)
	is := pod.DeepCopy()
	is.Labels = map[string]string{rqv1.LabelRun: run.Name, rqv1.LabelRunUID: string(run.UID),
		rqv1.LabelSource: string(rqv1.SourcePods), rqv1.LabelIndex: "0"}
	is.Finalizers = []string{"example.com/mine"}
	g.looksWith(is)
	g.clock.Step(g.groups.deadline)
	g.want("it waits", pod)
	is = is.DeepCopy()
	is.DeletionTimestamp = &metav1.Time{Time: g.clock.Now()}
	if err := g.watches.pods.GetStore().Update(is); err != nil {
		t.Fatal(err)
	}
	g.want("nobody has its rank", pod)
	g.clock.Step(g.groups.deadline)
	g.want("and none have come", pod, "delete")
}

// TestAPodThatLeavesItsGroupAsItIsGivenARank has that rank all the same, and once it is gone the group gives it to
// another.
func TestAPodThatLeavesItsGroupAsItIsGivenARank(t *testing.T) {
	g := newGrouped(t)
	g.named("o")
	pods := []*corev1.Pod{foreign("a", "8"), foreign("b", "8")}
	for _, pod := range pods {
		pod.Annotations = map[string]string{rqv1.AnnotationGroup: "g", rqv1.AnnotationGroupSize: "1"}
		g.groups.note(pod)
	}
	g.want("it is new", pods[0], "create")
	g.want("nothing has changed", pods[0])
	run, left := g.run(), pods[0].DeepCopy()
	left.Annotations = map[string]string{rqv1.AnnotationGroup: "other", rqv1.AnnotationGroupSize: "1"}
	left.Labels = map[string]string{rqv1.LabelRun: run.Name, rqv1.LabelRunUID: string(run.UID),
		rqv1.LabelSource: string(rqv1.SourcePods)}
	g.groups.note(left)
	if offers, _ := g.groups.offers(run); len(offers) != 0 {
		t.Errorf("%d pods are offered, and nobody knows which rank is taken", len(offers))
	}
	g.groups.drop(left)
	if offers, _ := g.groups.offers(run); len(offers) != 1 {
		t.Errorf("%d pods are offered once it is gone", len(offers))
	}
}
