package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// told writes what waits, and returns the events that there are, and how often each was told.
func (r *reporter) told(t *testing.T) []string {
	t.Helper()
	for len(r.ahead) > 0 {
		r.write(t.Context(), <-r.ahead, 1)
	}
	all, err := r.kube.EventsV1().Events("").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := range all.Items {
		e := &all.Items[i]
		count := int32(1)
		if e.Series != nil {
			count = e.Series.Count
		}
		out = append(out, fmt.Sprintf("%s/%s %s %s: %s ×%d", e.Namespace, e.Regarding.Name, e.Type, e.Reason, e.Note, count))
	}
	slices.Sort(out)
	return out
}

func newTestReporter(lost ...string) *reporter {
	kube := fake.NewClientset()
	for _, verb := range lost {
		kube.PrependReactor(verb, "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewNotFound(corev1.Resource("events"), "gone")
		})
	}
	return newReporter(kube, clocktesting.NewFakeClock(noon), "jobtree")
}

// TestEveryFactIsTold tells different things of a node and of two versions of a Run, for one reason each, and some of
// them twice.
func TestEveryFactIsTold(t *testing.T) {
	r := newTestReporter()
	for range 2 {
		for _, pod := range []string{"a", "b"} {
			tellNode(r, "n1", corev1.EventTypeWarning, "PodStuck", "pod "+pod+" is stuck")
		}
	}
	s := statusWriter{events: r}
	for _, version := range []string{"1", "2"} {
		run := runAt(version)
		s.tell(run, &rqv1.RunStatus{Phase: rqv1.RunPending, Message: "short by 8"})
	}
	want := []string{
		"default/n1 Warning PodStuck: pod a is stuck ×2", "default/n1 Warning PodStuck: pod b is stuck ×2",
		"ns/train Normal Pending: short by 8 ×2",
	}
	if diff := cmp.Diff(want, r.told(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAnEventThatIsGoneIsToldAnew: the API server keeps events for an hour.
func TestAnEventThatIsGoneIsToldAnew(t *testing.T) {
	r := newTestReporter("patch")
	tellNode(r, "n1", corev1.EventTypeNormal, "LeftOut", "a")
	before := r.told(t)
	tellNode(r, "n1", corev1.EventTypeNormal, "LeftOut", "a")
	events, err := r.kube.EventsV1().Events("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range events.Items {
		if err := r.kube.EventsV1().Events("default").Delete(t.Context(), events.Items[i].Name,
			metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	after := r.told(t)
	if diff := cmp.Diff([]string{"default/n1 Normal LeftOut: a ×2"}, after); diff != "" || len(before) != 1 {
		t.Errorf("before %v; after (-want +got):\n%s", before, diff)
	}
}

// TestAnEventIsTriedAgain has no API server answer for more than a minute.
func TestAnEventIsTriedAgain(t *testing.T) {
	clock, kube := clocktesting.NewFakeClock(noon), fake.NewClientset()
	r := newReporter(kube, clock, "jobtree")
	back := noon.Add(90 * time.Second)
	kube.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		return clock.Now().Before(back), nil, errors.New("connection refused")
	})
	tellNode(r, "n1", corev1.EventTypeNormal, "LeftOut", "a")
	if got := r.told(t); len(got) > 0 {
		t.Fatalf("written already: %v", got)
	}
	within := time.After(10 * time.Second)
	for len(r.told(t)) == 0 {
		select {
		case <-within:
			t.Fatal("it is not tried again")
		default:
			if clock.HasWaiters() {
				clock.Step(eventPause)
			}
		}
	}
}

// TestLongMessagesThatDiffer tells two that differ behind what an event takes: both are told.
func TestLongMessagesThatDiffer(t *testing.T) {
	r := newTestReporter()
	long := strings.Repeat("sponsor org:x does not lend; ", 40)
	tellNode(r, "n1", corev1.EventTypeNormal, "LeftOut", long+"short by 8")
	tellNode(r, "n1", corev1.EventTypeNormal, "LeftOut", long+"short by 16")
	if got := r.told(t); len(got) != 2 {
		t.Errorf("the events are %v", got)
	}
}

// TestALongMessageIsToldInAnEvent: the API refuses an event whose note or name is too long.
func TestALongMessageIsToldInAnEvent(t *testing.T) {
	r := newTestReporter()
	s := statusWriter{events: r}
	long := "short by 8 of 16 GPUs (" + strings.Repeat("sponsor org:ö does not lend, at 100%; ", 40)
	s.tell(runAt("1"), &rqv1.RunStatus{Phase: rqv1.RunPending, Message: long})
	event := <-r.ahead
	note := r.object(event).Note
	if cut := strings.TrimSuffix(note, "…"); len(note) > longestNote || !strings.HasPrefix(long, cut) || cut == "" {
		t.Errorf("a note of %d bytes: %s", len(note), note)
	}
	s.tell(runAt("1"), &rqv1.RunStatus{Phase: rqv1.RunPending, Message: "at 100%"})
	if event := <-r.ahead; event.Note != "at 100%" {
		t.Errorf("a short message is told as %q", event.Note)
	}
	event.Regarding.Name = strings.Repeat("node.", 50) + "n"
	if name := r.object(event).Name; len(name) > 253 || strings.Contains(name, "..") {
		t.Errorf("an event is called %s", name)
	}
}
