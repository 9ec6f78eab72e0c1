package controllers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	core "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/group"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
)

// grouped is a cluster with pods that no Run made, in a namespace that names who pays for them.
type grouped struct {
	*cluster
	denied bool // nobody may pay
	asked  int  // how often somebody was asked who may
}

func newGrouped(t *testing.T) *grouped {
	t.Helper()
	g := &grouped{cluster: newCluster(t)}
	g.groups.decides.Store(true)
	g.kube.PrependReactor("create", "subjectaccessreviews", func(core.Action) (bool, runtime.Object, error) {
		g.asked++
		return true, &authorizationv1.SubjectAccessReview{
			Status: authorizationv1.SubjectAccessReviewStatus{Allowed: !g.denied}}, nil
	})
	return g
}

// named has the namespace name who pays.
func (g *grouped) named(owner string) {
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns",
		Annotations: map[string]string{rqv1.AnnotationOwner: owner}}}
	all := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
	if err := all.Add(space); err != nil {
		g.t.Fatal(err)
	}
	g.groups.namespaces = corelisters.NewNamespaceLister(all)
}

// foreign is a pod that no Run made.
func foreign(name, asks string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid of " + name)},
		Spec: corev1.PodSpec{SchedulerName: rqv1.SchedulerName, Containers: []corev1.Container{{Name: "main"}}}}
	if asks != "" {
		pod.Spec.Containers[0].Resources.Limits = gpus(asks)
		pod.Spec.Containers[0].Resources.Requests = gpus(asks)
	}
	return pod
}

// looks has the group of a pod be looked at, with all that has happened to Runs seen, and returns what was written.
func (g *grouped) looks(pod *corev1.Pod) (wrote []string, after time.Duration) {
	g.t.Helper()
	before := g.runsOf()
	g.see()
	for name, run := range before {
		if is := g.runsOf()[name]; is == nil || is.UID != run.UID {
			g.groups.ended(run)
		}
	}
	for _, run := range g.runsOf() {
		g.groups.ran(run)
	}
	g.wrote = nil
	after, err := g.groups.look(g.t.Context(), group.Of(pod).Key)
	if err != nil {
		g.t.Fatal(err)
	}
	for _, what := range g.wrote {
		if verb, rest, _ := strings.Cut(what, " "); strings.HasPrefix(rest, "runs ") {
			wrote = append(wrote, verb)
		}
	}
	return wrote, after
}

func (g *grouped) runsOf() map[string]*rqv1.Run {
	out := map[string]*rqv1.Run{}
	for _, o := range g.watches.runs.GetStore().List() {
		out[o.(*rqv1.Run).Name] = o.(*rqv1.Run)
	}
	return out
}

func (g *grouped) want(what string, pod *corev1.Pod, want ...string) {
	g.t.Helper()
	if got, _ := g.looks(pod); !cmp.Equal(want, got) {
		g.t.Errorf("%s: Runs were written so: %v, want %v", what, got, want)
	}
}

// TestAGroupIsReadUntilItStarts: who pays is mended while a group waits, and its Run is another then; once it has
// started, what was read stands.
func TestAGroupIsReadUntilItStarts(t *testing.T) {
	g := newGrouped(t)
	pod := foreign("a", "8")
	g.groups.note(pod)
	g.named("wrong")
	g.want("it is new", pod, "create")
	g.want("nothing has changed", pod)
	if _, after := g.looks(pod); after <= 0 || after > time.Minute {
		t.Errorf("a group that waits is looked at again after %s, and nobody tells when its namespace is mended", after)
	}
	g.named("o")
	g.want("its owner is mended", pod, "delete")
	g.want("which was seen", pod, "create")
	g.want("nothing has changed", pod)
	run := g.run()
	if run.Spec.Owner != "o" {
		t.Errorf("%s pays", run.Spec.Owner)
	}
	run.Status.Phase = rqv1.RunRunning
	if err := g.kinds.Status().Update(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	g.named("wrong")
	g.want("it has started", pod)
	run.Status.Phase = rqv1.RunPending
	if err := g.kinds.Status().Update(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	g.want("it was sent back", pod)
}

// run returns the only Run that there is.
func (g *grouped) run() *rqv1.Run {
	g.t.Helper()
	list := listed[rqv1.RunList](g.cluster)
	if len(list.Items) != 1 {
		g.t.Fatalf("there are %d Runs, want one", len(list.Items))
	}
	return &list.Items[0]
}

// TestAGroupThatIsMadeAnew under its name is another: its pods get no ranks in the Run of the one before, which is
// about to go.
func TestAGroupThatIsMadeAnew(t *testing.T) {
	g := newGrouped(t)
	g.named("o")
	was, is := foreign("a", "8"), foreign("a", "8")
	is.UID = "another"
	g.groups.note(was)
	g.want("it is new", was, "create")
	g.groups.drop(was)
	g.groups.note(is)
	g.want("another has its name", is, "delete")
	g.want("which was seen", is, "create")
	if of := g.run().OwnerReferences; len(of) != 1 || of[0].UID != is.UID {
		t.Errorf("the Run goes with %v", of)
	}
}

// TestAPodThatItsControllerMakesAgain under its name, as a StatefulSet does, is the same group: its Run outlives the
// pod, and with it the place in line, or what is kept for a rank that runs, and its spare.
func TestAPodThatItsControllerMakesAgain(t *testing.T) {
	g, controls := newGrouped(t), true
	g.named("o")
	was, is, other := foreign("web-0", "8"), foreign("web-0", "8"), foreign("web-0", "8")
	is.UID, other.UID = "another", "of a StatefulSet that was made anew"
	for pod, set := range map[*corev1.Pod]types.UID{was: "set", is: "set", other: "anew"} {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: set,
			Controller: &controls}}
	}
	g.groups.note(was)
	g.want("it is new", was, "create")
	g.groups.drop(was)
	g.groups.note(is)
	g.want("its pod has been made again", is)
	if of := g.run().OwnerReferences; len(of) != 1 || of[0].UID != "set" || of[0].Controller != nil {
		t.Errorf("the Run goes with %v", of)
	}
	g.groups.drop(is)
	g.want("it has no pods", is)
	g.clock.Step(g.groups.deadline)
	g.want("and none have come", is, "delete")
	g.groups.note(is)
	g.want("it has one again", is, "create")
	g.groups.drop(is)
	g.groups.note(other)
	g.want("another StatefulSet has its name", other, "delete")
}

// TestPodsThatComeBeforeAGroupStarts are of it: how many there are is not known where nothing says it.
func TestPodsThatComeBeforeAGroupStarts(t *testing.T) {
	g := newGrouped(t)
	g.named("o")
	var pods []*corev1.Pod
	for i := range 3 {
		pod := foreign(fmt.Sprint("p", i), "8")
		pod.Annotations = map[string]string{rqv1.AnnotationGroup: "g", rqv1.AnnotationGroupSize: "1"}
		pods = append(pods, pod)
	}
	g.groups.note(pods[0])
	g.groups.note(pods[1])
	g.want("two are there", pods[0], "create")
	g.groups.note(pods[2])
	g.want("another has come", pods[0], "delete")
	g.want("which was seen", pods[0], "create")
	if gpus := g.run().Spec.Resources.TotalGPUs; gpus != 24 {
		t.Errorf("the Run asks for %d GPUs", gpus)
	}
}

// TestWhoMayNotPayIsAskedOnce for all groups that name them, and again soon: it may be granted.
func TestWhoMayNotPayIsAskedOnce(t *testing.T) {
	g := newGrouped(t)
	g.named("o")
	g.denied = true
	for i := range 5 {
		pod := foreign(fmt.Sprint("p", i), "8")
		g.groups.note(pod)
		g.want("it is denied", pod)
	}
	if g.asked != 1 {
		t.Errorf("it was asked %d times whether one account may pay", g.asked)
	}
	g.denied = false
	g.clock.Step(groupRest)
	g.want("it is granted", foreign("p0", "8"), "create")
}

// TestPodsWithoutGPUsCostNothing: no object is read for the sake of pods that nobody pays for.
func TestPodsWithoutGPUsCostNothing(t *testing.T) {
	g := newGrouped(t)
	pod := foreign("web", "")
	controls := true
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "rs",
		Controller: &controls}}
	g.groups.note(pod)
	g.faults = []fault{{on: "get", err: broken500}}
	g.want("it is free", pod)
	if why := g.book.HoldsBack(pod); why != "" {
		t.Errorf("it is held back: %s", why)
	}
}

// TestAGroupThatCannotBeReadIsReadAgain, also when it has a Run: its pods get no ranks until then.
func TestAGroupThatCannotBeReadIsReadAgain(t *testing.T) {
	g := newGrouped(t)
	pod := foreign("job-0", "8")
	pod.Labels = map[string]string{"batch.kubernetes.io/job-name": "job", "batch.kubernetes.io/job-completion-index": "0"}
	key := group.Of(pod).Key
	size := int32(8)
	run := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: group.RunName(key), UID: "run"},
		Spec: rqv1.RunSpec{Owner: "o", Source: rqv1.SourcePods, Pods: &rqv1.RunPods{APIGroup: key.API, Kind: key.Kind,
			Name: key.Name}, Resources: rqv1.RunResources{GPUType: "H100", TotalGPUs: 8, GPUsPerPod: &size}}}
	if err := g.kinds.Create(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	g.groups.note(pod)
	if _, after := g.looks(pod); after <= 0 || after > groupRest {
		t.Errorf("it is read again after %s", after)
	}
}

// TestAStandbyForgetsGroups that are over: it looks at none, for months. Once it decides it looks at all that there
// are.
func TestAStandbyForgetsGroups(t *testing.T) {
	g := newGrouped(t)
	g.groups.decides.Store(false)
	for i := range 100 {
		pod, run := foreign(fmt.Sprint("p", i), "8"), &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns",
			UID: types.UID(fmt.Sprint("run", i))}}
		run.Spec.Source, run.Spec.Pods = rqv1.SourcePods, &rqv1.RunPods{Kind: "Pod", Name: pod.Name}
		g.groups.note(pod)
		g.groups.ran(run)
		ranked := pod.DeepCopy()
		ranked.Labels = map[string]string{rqv1.LabelRun: "r", rqv1.LabelSource: string(rqv1.SourcePods)}
		g.groups.note(ranked)
		g.groups.member(ranked)
		g.groups.drop(ranked)
		g.groups.ended(run)
		g.groups.gone(ranked)
	}
	waits := foreign("waits", "8")
	g.groups.note(waits)
	if len(g.groups.known) != 1 {
		t.Errorf("a standby knows %d groups", len(g.groups.known))
	}
	g.groups.begin()
	if key, _ := g.groups.line.next(); key != group.Of(waits).Key {
		t.Errorf("it looks at %s", key)
	}
}

// TestAPodThatHasChangedIsNotGivenARank as it was: somebody may have given it one meanwhile.
func TestAPodThatHasChangedIsNotGivenARank(t *testing.T) {
	g := newGrouped(t)
	pod := foreign("a", "8")
	pod.ResourceVersion = "7"
	writer := podWriter{kube: g.kube, clock: g.clock, untold: new(untold)}
	g.faults = []fault{{on: "patch pods", err: conflict}}
	adopted := []lifecycle.Adoption{{Pod: pod, Labels: map[string]string{rqv1.LabelRun: "r"}}}
	if err := writer.AdoptPods(t.Context(), adopted); err == nil {
		t.Error("a conflict is taken for a pod that is gone: nobody looks again")
	}
	sent := ""
	for _, action := range g.kube.Actions() {
		if patch, ok := action.(core.PatchAction); ok {
			sent = string(patch.GetPatch())
		}
	}
	if !strings.Contains(sent, `"resourceVersion":"7"`) {
		t.Errorf("it is given a rank whatever it is by now: %s", sent)
	}
	if err := writer.ReleasePods(t.Context(), []*corev1.Pod{pod}); err != nil {
		t.Error(err)
	}
}

// TestAFailedGroupMayBeMadeAnew: no object says that it has ended, and a controller makes its pods. Its places are kept
// for as long as those of pods that are gone.
func TestAFailedGroupMayBeMadeAnew(t *testing.T) {
	for name, test := range map[string]struct {
		controlled, alone bool
		name              string // by which its controller makes it, and others
		want              rqv1.RunPhase
	}{
		"by nobody":       {want: rqv1.RunFailed},
		"by a controller": {controlled: true},
		"by a controller, alone and under the same name": {controlled: true, alone: true},
		"by a controller, alone and under another name":  {controlled: true, alone: true, name: "job-"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGrouped(t)
			g.named("o")
			pod := foreign("w", "8")
			pod.GenerateName = test.name
			if !test.alone {
				pod.Annotations = map[string]string{rqv1.AnnotationGroup: "g", rqv1.AnnotationGroupSize: "1"}
			}
			if test.controlled {
				pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "rq.davidlangworthy.io/v1", Kind: "Run", Name: "none",
					Controller: &test.controlled}}
			}
			g.groups.note(pod)
			g.want("it is new", pod, "create")
			g.see()
			run := g.run()
			failed := pod.DeepCopy()
			failed.Labels = map[string]string{rqv1.LabelRun: run.Name, rqv1.LabelRunUID: string(run.UID),
				rqv1.LabelSource: string(rqv1.SourcePods)}
			failed.Spec.NodeName, failed.Status.Phase = "n0", corev1.PodFailed
			g.groups.drop(pod)
			run.Status.Phase = rqv1.RunRunning
			if err := g.kinds.Status().Update(t.Context(), run); err != nil {
				t.Fatal(err)
			}
			g.looksWith(failed)
			if _, end := g.groups.offers(run); end != test.want {
				t.Errorf("it has ended as %q, want %q", end, test.want)
			}
			g.clock.Step(g.groups.deadline)
			g.looksWith(failed)
			if _, end := g.groups.offers(run); end != rqv1.RunFailed {
				t.Errorf("it has ended as %q after gangDeadline", end)
			}
		})
	}
}

// looksWith has the group of a pod be looked at that has its rank.
func (g *grouped) looksWith(pod *corev1.Pod) {
	g.t.Helper()
	g.see()
	if err := g.watches.pods.GetStore().Add(pod); err != nil {
		g.t.Fatal(err)
	}
	for _, run := range g.runsOf() {
		g.groups.ran(run)
	}
	if _, err := g.groups.look(g.t.Context(), group.Of(pod).Key); err != nil {
		g.t.Fatal(err)
	}
}
