package controllers

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/group"
)

// withPodGroup is an API server that serves native PodGroups beside all else, and has one.
type withPodGroup struct {
	client.WithWatch
	is     map[string]any
	refuse error // what its status is not written for
	wrote  int   // how often that was
}

func (c *withPodGroup) RESTMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{schedulingv1beta1.SchemeGroupVersion})
	mapper.Add(schedulingv1beta1.SchemeGroupVersion.WithKind("PodGroup"), meta.RESTScopeNamespace)
	return mapper
}

func (c *withPodGroup) Get(ctx context.Context, key client.ObjectKey, o client.Object, how ...client.GetOption) error {
	object, is := o.(*unstructured.Unstructured)
	if !is || object.GetKind() != "PodGroup" {
		return c.WithWatch.Get(ctx, key, o, how...)
	}
	if key.Name != "gang" {
		return notFound
	}
	object.Object = maps.Clone(c.is)
	return nil
}

func (c *withPodGroup) Status() client.SubResourceWriter {
	return podGroupStatus{c.WithWatch.Status(), c}
}

type podGroupStatus struct {
	client.SubResourceWriter
	of *withPodGroup
}

func (s podGroupStatus) Patch(_ context.Context, o client.Object, patch client.Patch,
	_ ...client.SubResourcePatchOption) error {
	s.of.wrote++
	if s.of.refuse != nil {
		return s.of.refuse
	}
	data, err := patch.Data(o)
	if err != nil {
		return err
	}
	var said struct{ Status map[string]any }
	if err := json.Unmarshal(data, &said); err != nil {
		return err
	}
	s.of.is["status"] = said.Status
	return nil
}

// condition is what the PodGroup says of whether it has been scheduled.
func (c *withPodGroup) condition() string {
	all, _, _ := unstructured.NestedSlice(c.is, "status", "conditions")
	for _, raw := range all {
		of := raw.(map[string]any)
		return of["status"].(string) + " " + of["reason"].(string) + ": " + of["message"].(string)
	}
	return ""
}

// gangOf2 has a PodGroup that starts with two pods.
func gangOf2(t *testing.T) (*grouped, *withPodGroup) {
	t.Helper()
	g := newGrouped(t)
	g.named("o")
	api := &withPodGroup{WithWatch: g.kinds, is: map[string]any{"apiVersion": "scheduling.k8s.io/v1beta1",
		"kind": "PodGroup", "metadata": map[string]any{"namespace": "ns", "name": "gang", "uid": "gang"},
		"spec": map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": int64(2)}}}}}
	g.groups.client = api
	return g, api
}

func ofGang(name string) *corev1.Pod {
	pod := foreign(name, "8")
	pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("gang")}
	return pod
}

// TestAPodGroupSaysHowItStands: what pods it waits for, at once, and on a pod once they do not come; then that it has
// started, for good.
func TestAPodGroupSaysHowItStands(t *testing.T) {
	g, api := gangOf2(t)
	a := ofGang("a")
	g.groups.note(a)
	g.want("a pod is missing", a)
	const waits = "waiting for 1 more of the group's 2 pods to be created"
	if got := api.condition(); got != "False Unschedulable: "+waits {
		t.Errorf("it says %q", got)
	}
	told := func() string {
		_, why := g.book.RefusedFor(a.UID)
		return why
	}
	if got := told(); got != "" {
		t.Errorf("the pod is told at once: %s", got)
	}
	g.clock.Step(groupRest)
	g.want("it is still missing", a)
	if got := told(); got != waits || api.wrote != 1 {
		t.Errorf("the pod is told %q, and the group %d times", got, api.wrote)
	}
	g.groups.note(ofGang("b"))
	g.want("it is whole", a, "create")
	if got := told(); got != "" {
		t.Errorf("the pod is still told %q", got)
	}
	run := g.run()
	for _, status := range []rqv1.RunStatus{{Phase: rqv1.RunPending, Message: "short by 8"}, {Phase: rqv1.RunRunning},
		{Phase: rqv1.RunPending, Message: "cut"}} {
		run.Status = status
		if err := g.kinds.Status().Update(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		g.want("its Run has changed", a)
		want := "True Scheduled: Run " + run.Name + " has started"
		if status.Message == "short by 8" {
			want = "False Unschedulable: short by 8"
		}
		if got := api.condition(); got != want {
			t.Errorf("with %q it says %q", status.Message, got)
		}
	}
}

// TestAPodGroupThatMayNotBeWritten starts all the same.
func TestAPodGroupThatMayNotBeWritten(t *testing.T) {
	g, api := gangOf2(t)
	api.refuse = forbidden
	a := ofGang("a")
	g.groups.note(a)
	g.want("a pod is missing", a)
	g.groups.note(ofGang("b"))
	g.want("it is whole", a, "create")
	if api.wrote == 0 {
		t.Error("nobody has tried to write it")
	}
}

// TestPodsThatNameAGroup which is not theirs are told so: one of another owner, one when all are there, and one whose
// group is in another namespace. The group's own go on.
func TestPodsThatNameAGroup(t *testing.T) {
	g, _ := gangOf2(t)
	a := ofGang("a")
	g.groups.note(a)
	g.groups.note(ofGang("b"))
	g.want("it is whole", a, "create")
	run := g.run()
	run.Status.Phase = rqv1.RunRunning
	if err := g.kinds.Status().Update(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	forged := ofGang("forged")
	forged.Annotations = map[string]string{rqv1.AnnotationOwner: "org:somebody"}
	g.groups.note(forged)
	g.want("another has come", a)
	if got := g.book.Foreign(forged).Message; !strings.Contains(got, "o pays for PodGroup/gang") {
		t.Errorf("the one of another owner is told %q", got)
	}
	offered, _ := g.groups.offers(run)
	for _, o := range offered {
		if o.Pod.Name == "forged" {
			t.Error("it may get a rank")
		}
	}
	if len(offered) != 2 {
		t.Errorf("%d pods may get ranks, want the group's two", len(offered))
	}
	done := []*corev1.Pod{ofGang("a")}
	done[0].Status.Phase = corev1.PodSucceeded
	for _, pod := range []*corev1.Pod{a, ofGang("b")} {
		g.groups.drop(pod)
	}
	g.ranked(done[0], run)
	g.want("its pods are done", a)
	if _, end := g.groups.offers(run); end != rqv1.RunCompleted {
		t.Errorf("the group ends as %q while a pod waits that is not its own", end)
	}
	lost := ofGang("lost")
	lost.Spec.SchedulingGroup.PodGroupName = ptr.To("elsewhere")
	g.groups.note(lost)
	g.want("its group is not here", lost)
	if got := g.book.Foreign(lost).Message; !strings.Contains(got, "does not exist in namespace ns") {
		t.Errorf("the one without a group is told %q", got)
	}
	also := ofGang("lost-too")
	also.Spec.SchedulingGroup.PodGroupName = ptr.To("elsewhere")
	if _, err := g.kube.CoreV1().Pods("ns").Create(t.Context(), also, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	g.groups.note(also)
	g.want("another of it has come", lost)
	told, err := g.kube.CoreV1().Pods("ns").Get(t.Context(), also.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c := told.Status.Conditions; len(c) != 1 || c[0].Reason != "NotServed" ||
		!strings.Contains(c[0].Message, "does not exist in namespace ns") {
		t.Errorf("another pod of that group has conditions %+v", c)
	}
}

// ranked has a pod have the first rank of a Run.
func (g *grouped) ranked(pod *corev1.Pod, run *rqv1.Run) {
	g.t.Helper()
	pod.Labels = map[string]string{rqv1.LabelRun: run.Name, rqv1.LabelRunUID: string(run.UID),
		rqv1.LabelSource: string(rqv1.SourcePods),
		rqv1.LabelIndex:  "0"}
	if _, err := g.kube.CoreV1().Pods("ns").Create(g.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		g.t.Fatal(err)
	}
}

// TestAllWhoseGPUsArePaid are asked for, each once: one pod of a group may run as somebody else.
func TestAllWhoseGPUsArePaid(t *testing.T) {
	g, _ := gangOf2(t)
	a, b := ofGang("a"), ofGang("b")
	b.Spec.ServiceAccountName = "other"
	g.groups.note(a)
	g.groups.note(b)
	g.want("it is whole", a, "create")
	if g.asked != 2 {
		t.Errorf("%d service accounts were asked about, want 2", g.asked)
	}
}

// TestTrim: the scheduler's cache of pods keeps of who wrote what only that a group was dropped.
func TestTrim(t *testing.T) {
	pod := foreign("p", "8")
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl",
		FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:schedulingGroup":{}}}`)}}}
	kept, err := trim(pod)
	if err != nil || !group.Dropped(kept.(*corev1.Pod)) {
		t.Errorf("nobody sees that the group was dropped: %v", err)
	}
	if kept, err := trim("what is no pod"); err != nil || kept != "what is no pod" {
		t.Errorf("got %v, %v", kept, err)
	}
}

// TestAPodGroupThatIsToHaveMorePods before it has started waits for them, although its Run has been made with fewer.
// One of whose pods is made anew does not lose its Run, and that its place in line.
func TestAPodGroupThatIsToHaveMorePods(t *testing.T) {
	g, api := gangOf2(t)
	a := ofGang("a")
	g.groups.note(a)
	g.groups.note(ofGang("b"))
	g.want("it is whole", a, "create")
	g.groups.drop(ofGang("b"))
	g.want("one is made anew", a)
	g.groups.note(ofGang("b"))
	if err := unstructured.SetNestedField(api.is, int64(3), "spec", "schedulingPolicy", "gang", "minCount"); err != nil {
		t.Fatal(err)
	}
	g.want("it is to start with three", a, "delete")
	g.want("it waits for the third", a)
	g.groups.note(ofGang("c"))
	g.want("it is whole", a, "create")
	if total := g.run().Spec.Resources.TotalGPUs; total != 24 {
		t.Errorf("it asks for %d GPUs", total)
	}
}

// TestAPodIsToldAnew why its Run cannot have it: no other event says so when nodes have come.
func TestAPodIsToldAnew(t *testing.T) {
	g := newGrouped(t)
	g.named("o")
	pod := inGroup("a", "")
	g.groups.note(pod)
	g.want("it is new", pod, "create")
	line := &noted{PriorityQueue: g.groups.line.PriorityQueue}
	g.groups.line.PriorityQueue = line
	run := g.run()
	for _, c := range []struct {
		phase   rqv1.RunPhase
		message string
		again   bool
	}{{rqv1.RunPending, "short by 8", true}, {rqv1.RunPending, "short by 8", false},
		{rqv1.RunPending, "short by 4", true}, {rqv1.RunRunning, "it runs", true}, {rqv1.RunRunning, "7 of 8 ready", false}} {
		before := line.added
		run.Status = rqv1.RunStatus{Phase: c.phase, Message: c.message}
		g.groups.ran(run)
		if again := line.added > before; again != c.again {
			t.Errorf("once its Run says %q its group is looked at: %v", c.message, again)
		}
	}
	ranked := pod.DeepCopy()
	ranked.Labels = map[string]string{rqv1.LabelRun: run.Name, rqv1.LabelRunUID: string(run.UID),
		rqv1.LabelSource: string(rqv1.SourcePods)}
	run.Status.Phase = rqv1.RunPending
	g.groups.ran(run)
	g.groups.note(ranked)
	before := line.added
	run.Status.Message = "short by 2"
	if g.groups.ran(run); line.added > before {
		t.Error("all pods have ranks, and are told by these; their group is looked at")
	}
}

// noted counts how often groups are to be looked at.
type noted struct {
	priorityqueue.PriorityQueue[group.Key]
	added int
}

func (n *noted) AddWithOpts(priorityqueue.AddOpts, ...group.Key) { n.added++ }

// TestPodsOfAFormerRun are none of the one that follows it under its name: they take their time to go, and the group is
// read until it starts all the same, by its own pods alone.
func TestPodsOfAFormerRun(t *testing.T) {
	g, _ := gangOf2(t)
	pods := []*corev1.Pod{ofGang("a"), ofGang("b")}
	for _, pod := range pods {
		g.groups.note(pod)
	}
	a := pods[0]
	g.want("it is whole", a, "create")
	g.runsWith(pods...)
	g.want("it runs", a)
	if err := g.kinds.Delete(t.Context(), g.run()); err != nil {
		t.Fatal(err)
	}
	g.groups.note(ofGang("c"))
	g.want("its Run is gone, and one pod has come", a)
	g.groups.note(ofGang("d"))
	g.want("two have come", a, "create")
	if is := g.run().Spec; is.Resources.TotalGPUs != 16 || is.Malleable != nil {
		t.Errorf("it asks for %d GPUs, %+v", is.Resources.TotalGPUs, is.Malleable)
	}
	g.groups.note(ofGang("e"))
	g.want("another has come", a, "delete")
	g.want("which was seen", a, "create")
	if total := g.run().Spec.Resources.TotalGPUs; total != 24 {
		t.Errorf("it asks for %d GPUs", total)
	}
}

// TestAPodThatIsMadeAnewUnderItsName is another group, also while the one before is still seen with its rank: that Run
// goes with its pod, and whoever had a rank in it would be ended.
func TestAPodThatIsMadeAnewUnderItsName(t *testing.T) {
	g := newGrouped(t)
	g.named("o")
	pod := foreign("web-0", "8")
	g.groups.note(pod)
	g.want("it is new", pod, "create")
	g.runsWith(pod)
	next := foreign("web-0", "8")
	next.UID = "anew"
	g.groups.note(next)
	g.want("it is made anew", next, "delete")
}
