package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	core "k8s.io/client-go/testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/group"
)

// payersAre lets those service accounts of the namespace pay that a set has.
func (g *grouped) payersAre(may map[string]bool) {
	g.kube.PrependReactor("create", "subjectaccessreviews", func(a core.Action) (bool, runtime.Object, error) {
		review := a.(core.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
		_, account, _ := strings.Cut(review.Spec.User, ":ns:")
		return true, &authorizationv1.SubjectAccessReview{
			Status: authorizationv1.SubjectAccessReviewStatus{Allowed: may[account]}}, nil
	})
}

// inGroup is a pod of a service account in group g.
func inGroup(name, account string) *corev1.Pod {
	pod := foreign(name, "8")
	pod.Spec.ServiceAccountName = account
	pod.Annotations = map[string]string{rqv1.AnnotationGroup: "g", rqv1.AnnotationGroupSize: "1"}
	return pod
}

// offered returns the names of the pods that the only Run may give ranks to.
func (g *grouped) offered() []string {
	g.t.Helper()
	offers, _ := g.groups.offers(g.run())
	names := []string{}
	for _, o := range offers {
		names = append(names, o.Pod.Name)
	}
	slices.Sort(names)
	return names
}

func (g *grouped) wantOffered(what string, want ...string) {
	g.t.Helper()
	if got := g.offered(); !slices.Equal(got, want) {
		g.t.Errorf("%s: %v are offered, want %v", what, got, want)
	}
}

// starts has the only Run run.
func (g *grouped) starts() {
	g.t.Helper()
	run := g.run()
	run.Status.Phase = rqv1.RunRunning
	if err := g.kinds.Status().Update(g.t.Context(), run); err != nil {
		g.t.Fatal(err)
	}
}

// has has the API server have a pod, with a rank in the only Run.
func (g *grouped) has(pod *corev1.Pod) {
	g.t.Helper()
	run := g.run()
	pod = pod.DeepCopy()
	pod.Labels = map[string]string{rqv1.LabelRun: run.Name, rqv1.LabelRunUID: string(run.UID), rqv1.LabelIndex: "0",
		rqv1.LabelSource: string(rqv1.SourcePods)}
	if _, err := g.kube.CoreV1().Pods("ns").Create(g.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		g.t.Fatal(err)
	}
	g.groups.note(pod)
}

// told is what a pod that is not placed is told.
func (g *grouped) toldOf(pod *corev1.Pod) string {
	if refusal := g.book.Foreign(pod); refusal != nil {
		return refusal.Message
	}
	return ""
}

// TestWhoMayNotPayJoinsNoGroup that others pay for, neither before it starts nor when it loses a pod.
func TestWhoMayNotPayJoinsNoGroup(t *testing.T) {
	g := newGrouped(t)
	g.named("o")
	may := map[string]bool{"payer": true}
	g.payersAre(may)
	first, joins := inGroup("a", "payer"), inGroup("b", "other")
	g.groups.note(first)
	g.want("it is new", first, "create")
	g.starts()
	g.groups.note(joins)
	g.want("it runs", first)
	g.wantOffered("another account joins", "a")
	if why := g.toldOf(joins); !strings.Contains(why, "service account other of namespace ns may not spend as o") {
		t.Errorf("who joins is told %q", why)
	}
	g.has(first)
	g.want("it has its rank", first)
	g.wantOffered("it is full")

	if err := g.kube.CoreV1().Pods("ns").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	again := inGroup("c", "payer")
	g.groups.note(again)
	delete(may, "payer")
	g.clock.Step(2 * allowedFor)
	if _, after := g.looks(first); after <= 0 || after > groupRest {
		t.Errorf("a group with a pod that may not pay is looked at again after %s", after)
	}
	g.wantOffered("the right is taken away, and a replacement is not asked about", "c")

	may["other"] = true
	g.clock.Step(2 * allowedFor)
	g.want("it is given to the other", first)
	g.wantOffered("it is given to the other", "b", "c")
}

// TestARunThatWaitsGoesWithTheRight to spend, which is asked about at each start, also where room is kept for it.
func TestARunThatWaitsGoesWithTheRight(t *testing.T) {
	for _, kept := range []bool{false, true} {
		g := newGrouped(t)
		g.named("o")
		may := map[string]bool{"payer": true}
		g.payersAre(may)
		pod := inGroup("a", "payer")
		g.groups.note(pod)
		g.want("it is new", pod, "create")
		g.has(pod)
		g.want("it waits", pod)
		run := g.run()
		if kept {
			run.Status.Phase = rqv1.RunPending
			run.Status.Conditions = []metav1.Condition{{Type: rqv1.ConditionRoomKept, Status: metav1.ConditionTrue,
				Reason: "Requeued", LastTransitionTime: metav1.NewTime(g.clock.Now())}}
			if err := g.kinds.Status().Update(t.Context(), run); err != nil {
				t.Fatal(err)
			}
		}
		g.see()
		delete(may, "payer")
		g.clock.Step(2 * allowedFor)
		g.want("the right is taken away", pod, "delete")
	}
}

// TestGatedPodsGetNoRanks: a gang would be planned, and others end for it, although something else is to happen first.
func TestGatedPodsGetNoRanks(t *testing.T) {
	g := newGrouped(t)
	g.named("o")
	gate := func(pod *corev1.Pod) *corev1.Pod {
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/quota"}}
		return pod
	}
	open, held := inGroup("a", ""), gate(inGroup("b", ""))
	g.groups.note(open)
	g.groups.note(held)
	g.want("it is new", open, "create")
	g.want("it waits", open)
	g.wantOffered("one is gated", "a")
	g.groups.note(inGroup("b", ""))
	g.want("it waits", open)
	g.wantOffered("none is gated", "a", "b")
}

// TestSomebodyElsesRun that has the name which a group's would have is left alone, however it ends.
func TestSomebodyElsesRun(t *testing.T) {
	for _, phase := range []rqv1.RunPhase{rqv1.RunPending, rqv1.RunRunning, rqv1.RunCompleted} {
		g := newGrouped(t)
		g.named("o")
		pod := inGroup("a", "")
		name := group.RunName(group.Of(pod).Key)
		run := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "theirs", OwnerReferences: []metav1.
			OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "a", UID: "another"}}}, Spec: rqv1.RunSpec{Owner: "o",
			Resources: rqv1.RunResources{GPUType: "H100", TotalGPUs: 8}}}
		if err := g.kinds.Create(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		run.Status.Phase = phase
		if err := g.kinds.Status().Update(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		g.groups.note(pod)
		g.want(string(phase), pod)
		if why := g.toldOf(pod); !strings.Contains(why, "is somebody else's: rename it") {
			t.Errorf("%s: the pod is told %q", phase, why)
		}
		g.groups.drop(pod)
		light := inGroup("b", "")
		light.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
		g.groups.note(light)
		g.clock.Step(2 * g.groups.deadline)
		g.want(string(phase)+", without pods", pod)
	}
}

// TestAPodComesToSayThatItIsInAnotherGroup: labels are anybody's to change. It is in one group at a time.
func TestAPodComesToSayThatItIsInAnotherGroup(t *testing.T) {
	g := newGrouped(t)
	g.named("o")
	in := func(name string) *corev1.Pod {
		pod := foreign("a", "8")
		pod.Labels = map[string]string{"kueue.x-k8s.io/pod-group-name": name}
		return pod
	}
	g.groups.note(in("one"))
	g.groups.note(in("two"))
	g.groups.note(in("three"))
	g.groups.drop(in("four"))
	for key, of := range g.groups.known {
		if len(of.waiting) > 0 {
			t.Errorf("a pod that is gone waits in %s", key)
		}
	}
	if len(g.groups.at) > 0 {
		t.Errorf("%v are kept", g.groups.at)
	}
}

// TestManyGroupsThatNobodyPaysFor have no more read of them than few.
func TestManyGroupsThatNobodyPaysFor(t *testing.T) {
	g := newGrouped(t)
	pods := []*corev1.Pod{}
	for i := range 5000 {
		pods = append(pods, foreign(fmt.Sprint("p", i), "8"))
		g.groups.note(pods[i])
	}
	if _, after := g.looks(pods[0]); after < 50*time.Second {
		t.Errorf("each of %d is looked at every %s", len(pods), after)
	}
}

// TestAControllerThatCannotBeRead is none of which anything is known: its pods are not held up by it.
func TestAControllerThatCannotBeRead(t *testing.T) {
	controls := true
	for name, err := range map[string]error{"../x": broken500, "x": apierrors.NewMethodNotSupported(
		schema.GroupResource{Group: "authentication.k8s.io", Resource: "tokenreviews"}, "get"), "y": notFound} {
		g := newGrouped(t)
		g.faults = []fault{{on: "get others", err: err}}
		pod := foreign("a", "8")
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview",
			Name: name, UID: "x", Controller: &controls}}
		g.groups.note(pod)
		g.want("nobody pays", pod)
		said := "what TokenReview/" + name + " says does not count, since the scheduler may not read it"
		if told := g.toldOf(pod); strings.Contains(told, said) != (name == "x") {
			t.Errorf("%s is told %q", name, told)
		}
		g.named("o")
		g.want(name, pod, "create")
	}
}

// TestNothingIsNotedOfPodsThatGoMeanwhile: one may go while its group is looked at, and nobody would have the book
// forget what it is told of it then.
func TestNothingIsNotedOfPodsThatGoMeanwhile(t *testing.T) {
	g := newGrouped(t)
	g.named("o")
	pod := foreign("a", "8")
	g.kube.PrependReactor("create", "subjectaccessreviews", func(core.Action) (bool, runtime.Object, error) {
		g.groups.drop(pod)
		return true, &authorizationv1.SubjectAccessReview{}, nil
	})
	g.groups.note(pod)
	g.want("it goes", pod)
	if told := g.toldOf(pod); strings.Contains(told, "may not spend") {
		t.Errorf("it is gone and told %q", told)
	}
}

// TestWhoMayNotPayHoldsUpNoGroupThatWaits: the group is read anew when pods have come, and its Run would go, and its
// place in line with that, for one that may not be among them.
func TestWhoMayNotPayHoldsUpNoGroupThatWaits(t *testing.T) {
	for _, ranked := range []bool{true, false} {
		g := newGrouped(t)
		g.named("o")
		g.payersAre(map[string]bool{"payer": true})
		first, joins := inGroup("b", "payer"), inGroup("a", "other")
		g.groups.note(first)
		g.want("it is new", first, "create")
		if ranked {
			g.has(first)
		}
		g.groups.note(joins)
		g.want("another joins", first)
		if why := g.toldOf(joins); !strings.Contains(why, "service account other of namespace ns may not spend as o") {
			t.Errorf("who joins is told %q", why)
		}
		g.groups.note(inGroup("c", "payer"))
		g.want("one that may joins too", first)
		g.groups.drop(joins)
		g.want("the first has gone", first, "delete")
	}
}
