package controllers

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	core "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// TestAPodThatIsNotLetGo is told so by an event, with who refuses it: its Run may be gone.
func TestAPodThatIsNotLetGo(t *testing.T) {
	kube, told := fake.NewClientset(rankOf(0, corev1.PodRunning), rankOf(1, corev1.PodRunning)), events.NewFakeRecorder(9)
	denied := apierrors.NewForbidden(corev1.Resource("pods"), "train-1", errors.New("protected"))
	kube.PrependReactor("delete", "pods", func(a core.Action) (bool, runtime.Object, error) {
		return a.(core.DeleteAction).GetName() == "train-1", nil, denied
	})
	p := podWriter{kube: kube, clock: clocktesting.NewFakeClock(noon), untold: new(untold), events: told}
	err := p.DeletePods(t.Context(), []lifecycle.Deletion{{Pod: rankOf(0, corev1.PodRunning), Why: "its Run is gone"},
		{Pod: rankOf(1, corev1.PodRunning), Why: "its Run is gone"}})
	if !errors.Is(err, denied) || len(told.Events) != 1 {
		t.Fatalf("%v, and %d events", err, len(told.Events))
	}
	want := fmt.Sprintf("Warning DeletionRefused the scheduler is to delete the pod, since its Run is gone, and the API "+
		"server refuses that: %s", denied)
	if diff := cmp.Diff(want, <-told.Events); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPodsThatGetNoRank: where the API server refuses the labels by which pods get their ranks, all of the group's pods
// are told so at once, before it runs and while it does.
func TestPodsThatGetNoRank(t *testing.T) {
	for name, status := range map[string]rqv1.RunStatus{
		"it waits": {Phase: rqv1.RunPending, Message: "the labels are refused",
			Refusal: &rqv1.RunRefusal{Reason: string(plan.NotCreated)}},
		"it runs": {Phase: rqv1.RunRunning, Message: "the labels are refused", Width: &rqv1.RunWidth{Granted: 16},
			Conditions: []metav1.Condition{{Type: rqv1.ConditionStarted, Status: metav1.ConditionTrue,
				Reason: string(plan.NotCreated), LastTransitionTime: metav1.NewTime(noon)}}},
	} {
		g := newGrouped(t)
		g.named("o")
		pods := []*corev1.Pod{inGroup("a", ""), inGroup("b", "")}
		for _, pod := range pods {
			g.comes(pod, "")
		}
		g.want("it is new", pods[0], "create")
		run := g.run()
		run.Status = status
		if err := g.kinds.Status().Update(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		told := events.NewFakeRecorder(9)
		g.groups.events = told
		g.want("it says so", pods[0])
		got := []string{}
		for len(told.Events) > 0 {
			got = append(got, <-told.Events)
		}
		says := "Warning FailedScheduling the labels are refused"
		if diff := cmp.Diff([]string{says, says}, got); diff != "" {
			t.Errorf("%s: they are told (-want +got):\n%s", name, diff)
		}
	}
}
