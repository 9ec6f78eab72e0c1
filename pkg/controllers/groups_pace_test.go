package controllers

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/group"
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
