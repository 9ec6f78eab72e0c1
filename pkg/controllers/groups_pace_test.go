package controllers

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/group"
	"github.com/davidlangworthy/jobtree/pkg/lane"
)

// TestAHeadWaitsForItsWorkers a moment, which its controller makes next, and is let go where none with GPUs come.
func TestAHeadWaitsForItsWorkers(t *testing.T) {
	g := newGrouped(t)
	head := foreign("tune-head", "")
	head.Labels = map[string]string{"ray.io/cluster": "tune", "ray.io/group": "headgroup"}
	head.CreationTimestamp = metav1.NewTime(g.clock.Now())
	g.groups.note(head)
	if _, after := g.looks(head); after != groupNext {
		t.Errorf("it is looked at again after %s", after)
	}
	if why := g.book.HoldsBack(head); why == "" {
		t.Error("it starts without them")
	}
	g.clock.Step(groupNext)
	g.want("none have come", head)
	if why := g.book.HoldsBack(head); why != "" {
		t.Errorf("it is held back: %s", why)
	}
}

// TestALargeGroupIsLookedAtLessOften than it gets pods: all of it is gone through each time.
func TestALargeGroupIsLookedAtLessOften(t *testing.T) {
	g := newGrouped(t)
	pod := foreign("p", "8")
	for i := range 1000 {
		pod = foreign(fmt.Sprint("p", i), "8")
		pod.Annotations = map[string]string{rqv1.AnnotationGroup: "g", rqv1.AnnotationGroupSize: "1000"}
		g.groups.note(pod)
	}
	key := group.Of(pod).Key
	for _, want := range []time.Duration{0, 100 * time.Millisecond} {
		if left := g.groups.pace(key); left != want {
			t.Errorf("it rests for %s, want %s", left, want)
		}
	}
	g.clock.Step(100 * time.Millisecond)
	if left := g.groups.pace(key); left != 0 {
		t.Errorf("it rests for %s after that", left)
	}
}

// TestGroupsThatHaveEndedMakeNobodyWait: only those of which pods wait for what nobody tells of are looked at in turn.
func TestGroupsThatHaveEndedMakeNobodyWait(t *testing.T) {
	g := newGrouped(t)
	for i := range 3000 {
		name := fmt.Sprint("r", i)
		g.groups.ran(&rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
			Spec:   rqv1.RunSpec{Source: rqv1.SourcePods, Pods: &rqv1.RunPods{Kind: "Pod", Name: name}},
			Status: rqv1.RunStatus{Phase: rqv1.RunCompleted}})
	}
	if len(g.groups.known) != 3000 {
		t.Fatalf("it knows %d groups", len(g.groups.known))
	}
	if rest := g.groups.rest(groupRest); rest != groupRest {
		t.Errorf("beside 3,000 groups that have ended one that waits is looked at again after %s", rest)
	}
	pods := make([]*corev1.Pod, 2000)
	for i := range pods {
		pods[i] = foreign(fmt.Sprint("p", i), "8")
		g.groups.note(pods[i])
		g.groups.note(pods[i])
	}
	if rest := g.groups.rest(groupRest); rest != 2000*groupPace {
		t.Errorf("beside 2,000 that wait it is looked at again after %s", rest)
	}
	for _, pod := range pods {
		g.groups.drop(pod)
	}
	if rest := g.groups.rest(groupRest); rest != groupRest {
		t.Errorf("when those have gone it is looked at again after %s", rest)
	}
}

// TestGroupsOfManyNamespaces: one with very many groups leaves workers to others, and groups that have begun go first.
func TestGroupsOfManyNamespaces(t *testing.T) {
	l := newGroupLine()
	defer l.shutDown()
	for i := range 100 {
		l.add(group.Key{Namespace: "many", Kind: "Pod", Name: fmt.Sprint(i)}, lane.Begin, 0)
	}
	begun := group.Key{Namespace: "other", Kind: "Job", Name: "begun"}
	l.add(group.Key{Namespace: "other", Kind: "Job", Name: "new"}, lane.Begin, 0)
	l.add(begun, lane.End, 0)
	has := map[string]int{}
	var first group.Key
	for range groupWorkers - 2 { // nobody is done
		key, _ := l.next()
		if has[key.Namespace]++; key.Namespace == "other" && first.Name == "" {
			first = key
		}
	}
	if diff := cmp.Diff(map[string]int{"many": groupWorkers / 2, "other": 2}, has); diff != "" {
		t.Errorf("the workers' namespaces (-want +got):\n%s", diff)
	}
	if first != begun {
		t.Errorf("of the namespace that has few %s goes first", first)
	}
	for range 2 {
		l.done(group.Key{Namespace: "other"})
	}
	seen := 0
	for range 100 - groupWorkers/2 {
		l.done(group.Key{Namespace: "many"})
		if key, _ := l.next(); key.Namespace == "many" {
			seen++
		}
	}
	if seen != 100-groupWorkers/2 {
		t.Errorf("%d of those that stood aside come", seen)
	}
}
