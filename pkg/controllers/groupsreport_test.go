package controllers

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	core "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/group"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
)

// comes has the API server have a pod, with what is said of whether it has been scheduled.
func (g *grouped) comes(pod *corev1.Pod, reason string) {
	g.t.Helper()
	if reason != "" {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: reason}}
	}
	if _, err := g.kube.CoreV1().Pods("ns").Create(g.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		g.t.Fatal(err)
	}
	g.groups.note(pod)
}

// comesTold has the API server have a pod that says, by no cycle, that no node fits it.
func (g *grouped) comesTold(pod *corev1.Pod) {
	g.t.Helper()
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonUnschedulable, LastProbeTime: metav1.NewTime(g.clock.Now())}}
	g.comes(pod, "")
}

// patches counts what pods are told from now on.
func (g *grouped) patches() *int {
	n := new(int)
	g.kube.PrependReactor("patch", "pods", func(core.Action) (bool, runtime.Object, error) {
		*n++
		return false, nil, nil
	})
	return n
}

// cycles has kube-scheduler refuse those pods that get as far, and the groups see what all say by then. It returns the
// reasons why they are not scheduled, by their names.
func (g *grouped) cycles() map[string]string {
	g.t.Helper()
	pods, said := g.kube.CoreV1().Pods("ns"), map[string]string{}
	list, err := pods.List(g.t.Context(), metav1.ListOptions{})
	if err != nil {
		g.t.Fatal(err)
	}
	for i := range list.Items {
		pod := &list.Items[i]
		if why := g.book.Foreign(pod); why != nil && !gated(pod) && g.book.HoldsBack(pod) == "" {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
				Reason: corev1.PodReasonUnschedulable, Message: "0/2 nodes are available: " + why.Message}}
			if _, err := pods.UpdateStatus(g.t.Context(), pod, metav1.UpdateOptions{}); err != nil {
				g.t.Fatal(err)
			}
		}
		for _, c := range pod.Status.Conditions {
			said[pod.Name] = c.Reason
		}
		g.groups.note(pod)
	}
	return said
}

// TestPodsOfAGroupThatIsNotServed are told so, but for those that say what else is to happen first: it is to be read of
// those that have a gate. Once it is mended, they do not go on saying so. No autoscaler adds nodes for them.
func TestPodsOfAGroupThatIsNotServed(t *testing.T) {
	g := newGrouped(t)
	g.named("")
	held := inGroup("a", "")
	held.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/quota"}}
	g.comes(held, corev1.PodReasonSchedulingGated)
	open := inGroup("b", "")
	g.comes(open, "")
	g.comes(inGroup("c", ""), "")
	says := func(what string, want map[string]string) {
		t.Helper()
		if diff := cmp.Diff(want, g.cycles()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	g.want("nobody is named who pays", open)
	says("nobody is named who pays", map[string]string{"a": "SchedulingGated", "b": "NotServed", "c": "NotServed"})
	g.want("nothing has changed", open)
	says("nothing has changed", map[string]string{"a": "SchedulingGated", "b": "NotServed", "c": "NotServed"})
	g.named("o")
	g.clock.Step(groupRest)
	g.want("it is mended", open, "create")
	says("it is mended", map[string]string{"a": "SchedulingGated", "b": "NotItsTurn", "c": "NotItsTurn"})
}

// TestAPodThatMayBePaidForAtLast does not go on saying what it was told of its service account.
func TestAPodThatMayBePaidForAtLast(t *testing.T) {
	g := newGrouped(t)
	g.named("o")
	a := inGroup("a", "")
	g.comes(a, "")
	g.want("it is new", a, "create")
	g.denied = true
	g.comes(inGroup("b", "other"), "")
	says := func(what, want string, wrote ...string) {
		t.Helper()
		g.want(what, a, wrote...)
		if diff := cmp.Diff(map[string]string{"b": want}, g.cycles()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	says("it may not be paid for", "NotServed")
	g.denied = false
	g.clock.Step(2 * allowedFor)
	says("it may be", "NotServed", "delete")
	says("the group has its Run with it", "NotItsTurn", "create")
}

// TestPodsThatWaitForMoreOfTheirGroup are not each told anew whenever one has come: one of them is, at a pace.
func TestPodsThatWaitForMoreOfTheirGroup(t *testing.T) {
	g := newGrouped(t)
	g.named("o")
	patched := g.patches()
	var first *corev1.Pod
	for _, name := range []string{"a", "b", "c"} {
		pod := inGroup(name, "")
		pod.Annotations[rqv1.AnnotationGroupSize] = "4"
		g.comes(pod, "")
		if first == nil {
			first = pod
		}
		g.want("it lacks pods", first)
		g.clock.Step(groupRest)
		*patched = 0
		g.want("none has come", first)
		want := map[string]string{"a": "NotItsTurn"}
		if diff := cmp.Diff(want, g.cycles()); diff != "" || *patched > 1 {
			t.Errorf("%d pods have been written; they say (-want +got):\n%s", *patched, diff)
		}
	}
}

// TestPodsOfAGroupThatIsServedButWaits do not go on saying what was wrong: one of them says what is lacking.
func TestPodsOfAGroupThatIsServedButWaits(t *testing.T) {
	g := newGrouped(t)
	g.named("")
	for _, name := range []string{"b", "c"} {
		pod := inGroup(name, "")
		pod.Annotations[rqv1.AnnotationGroupSize] = "3"
		g.comes(pod, "")
	}
	says := func(what string, want map[string]string) {
		t.Helper()
		g.want(what, inGroup("b", ""))
		if diff := cmp.Diff(want, g.cycles()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	says("nobody is named who pays", map[string]string{"b": "NotServed", "c": "NotServed"})
	g.named("o")
	says("it lacks a pod", map[string]string{"b": "NotServed", "c": "NotServed"})
	g.clock.Step(groupRest)
	says("none has come", map[string]string{"b": "NotItsTurn", "c": "NotItsTurn"})
}

// TestPodsOfAGroupWhoseRunIsGoneForLong do not go on naming it: the group waits for more pods than it had.
func TestPodsOfAGroupWhoseRunIsGoneForLong(t *testing.T) {
	g := newGrouped(t)
	g.named("o")
	for _, name := range []string{"b", "c"} {
		pod := inGroup(name, "")
		pod.Annotations[rqv1.AnnotationGroupSize] = "3"
		g.comesTold(pod)
	}
	g.want("it lacks a pod", inGroup("b", ""))
	g.clock.Step(groupRest)
	g.want("none has come", inGroup("b", ""))
	if diff := cmp.Diff(map[string]string{"b": "NotItsTurn", "c": "NotItsTurn"}, g.cycles()); diff != "" {
		t.Errorf("they say (-want +got):\n%s", diff)
	}
}

// TestPodsThatFitNoNode are not told that they wait for their group whenever another pod of it has come: autoscalers
// would see them come and go.
func TestPodsThatFitNoNode(t *testing.T) {
	g := newGrouped(t)
	g.named("o")
	patched := g.patches()
	a := inGroup("a", "")
	g.comesTold(a)
	g.want("it is new", a, "create")
	if *patched > 0 {
		t.Errorf("it was told %d times that it waits for its group", *patched)
	}
}

// TestAPodIsToldNothingOnceItIsBound: what is said of a pod that waits is of the pod as it was read.
func TestAPodIsToldNothingOnceItIsBound(t *testing.T) {
	c := newCluster(t)
	pod := foreign("a", "8")
	pod.ResourceVersion = "7"
	c.kube.PrependReactor("patch", "pods", func(a core.Action) (bool, runtime.Object, error) {
		patch := string(a.(core.PatchAction).GetPatch())
		if !strings.Contains(patch, `"resourceVersion":"7"`) {
			t.Errorf("a pod that has been bound since it was read takes %s", patch)
		}
		return true, nil, apierrors.NewConflict(corev1.Resource("pods"), "a", errors.New("it has been modified"))
	})
	words := []lifecycle.Word{{Pod: pod, Reason: "NotItsTurn", Message: "waiting"}}
	if err := (podWriter{kube: c.kube, clock: c.clock}).TellPods(t.Context(), words); err != nil {
		t.Error(err)
	}
}

// TestAGroupSaysHowItStandsThoughItsPodsCannot be told: what is wrong is on its object at once.
func TestAGroupSaysHowItStandsThoughItsPodsCannot(t *testing.T) {
	g, api := gangOf2(t)
	g.named("")
	fails := errors.New("out of order")
	g.kube.PrependReactor("patch", "pods", func(core.Action) (bool, runtime.Object, error) { return true, nil, fails })
	a := ofGang("a")
	g.comes(a, "")
	g.comes(ofGang("b"), "")
	if _, err := g.groups.look(t.Context(), group.Of(a).Key); !errors.Is(err, fails) {
		t.Errorf("looking at it fails with %v", err)
	}
	if got := api.condition(); !strings.Contains(got, rqv1.AnnotationOwner) {
		t.Errorf("it says %q", got)
	}
}

// TestWhoTakesWhatItIsTold has an event, whoever else of its group does not, and who does not is looked at again.
func TestWhoTakesWhatItIsTold(t *testing.T) {
	g := newGrouped(t)
	g.named("")
	fails := map[string]error{"b": apierrors.NewConflict(corev1.Resource("pods"), "b", errors.New("it has been modified")),
		"c": errors.New("out of order")}
	g.kube.PrependReactor("patch", "pods", func(a core.Action) (bool, runtime.Object, error) {
		err := fails[a.(core.PatchAction).GetName()]
		return err != nil, nil, err
	})
	recorder := events.NewFakeRecorder(10)
	g.groups.events = recorder
	for _, name := range []string{"a", "b", "c"} {
		g.comes(inGroup(name, ""), "")
	}
	key := group.Of(inGroup("a", "")).Key
	pods, _, err := g.groups.podsOf(key, nil)
	if err != nil {
		t.Fatal(err)
	}
	g.groups.refuse(lifecycle.ReasonNotServed, "nobody is named who pays", pods...)
	again, err := g.groups.tellRefused(t.Context(), key)
	if !errors.Is(err, fails["c"]) || again == 0 {
		t.Errorf("they are looked at again after %s: %v", again, err)
	}
	if n := len(recorder.Events); n != 1 {
		t.Errorf("there are %d events, want that of the one that has been told", n)
	}
}
