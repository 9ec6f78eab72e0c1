package controllers

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/group"
)

// runsWith has the only Run run with some pods, which have its ranks in order.
func (g *grouped) runsWith(pods ...*corev1.Pod) {
	g.t.Helper()
	g.starts()
	g.runsIn(g.run(), pods...)
}

// runsIn has pods run that have ranks in a Run.
func (g *grouped) runsIn(run *rqv1.Run, pods ...*corev1.Pod) {
	g.t.Helper()
	for i, pod := range pods {
		pod = pod.DeepCopy()
		pod.Labels = map[string]string{rqv1.LabelRun: run.Name, rqv1.LabelRunUID: string(run.UID),
			rqv1.LabelIndex: strconv.Itoa(i), rqv1.LabelSource: string(rqv1.SourcePods)}
		pod.Spec.NodeName = "n" + strconv.Itoa(i)
		if _, err := g.kube.CoreV1().Pods("ns").Create(g.t.Context(), pod, metav1.CreateOptions{}); err != nil {
			g.t.Fatal(err)
		}
		g.groups.note(pod)
	}
}

// runningGangOf2 is a gang of two pods that runs, with the first of them.
func runningGangOf2(t *testing.T) (*grouped, *corev1.Pod) {
	t.Helper()
	g, _ := gangOf2(t)
	a, b := ofGang("a"), ofGang("b")
	g.groups.note(a)
	g.groups.note(b)
	g.want("it is whole", a, "create")
	g.runsWith(a, b)
	g.want("it runs", a)
	return g, a
}

// TestAGroupThatGetsMorePods: its Run may grow by them, once; where it does not they are told so.
func TestAGroupThatGetsMorePods(t *testing.T) {
	g, a := runningGangOf2(t)
	c := ofGang("c")
	g.groups.note(c)
	g.want("another has come", a, "patch")
	want := &rqv1.RunMalleable{MinTotalGPUs: 16, MaxTotalGPUs: 24, StepGPUs: 8, DesiredTotalGPUs: ptr.To[int32](24)}
	if diff := cmp.Diff(want, g.run().Spec.Malleable); diff != "" {
		t.Errorf("the Run's widths (-want +got):\n%s", diff)
	}
	g.want("nothing is new", a)
	if told := g.toldOf(c); strings.Contains(told, "can grow") {
		t.Errorf("it is told at once: %s", told)
	}
	g.clock.Step(groupRest)
	g.want("it does not grow", a)
	if told := g.toldOf(c); !strings.Contains(told, "another pod starts when Run "+g.run().Name+" can grow") {
		t.Errorf("it is told %q", told)
	}
	if offered, _ := g.groups.offers(g.run()); len(offered) != 1 {
		t.Errorf("%d pods may get ranks, want the one that waits", len(offered))
	}
}

// TestAGroupThatItsPodsNameGetsMorePods: a Deployment whose template names the group makes the next pod before one
// goes, and the Run grows by it. Pods that nobody controls are too many.
func TestAGroupThatItsPodsNameGetsMorePods(t *testing.T) {
	for _, controls := range []bool{true, false} {
		g := newGrouped(t)
		g.named("o")
		var pods []*corev1.Pod
		for _, name := range []string{"a", "b", "c"} {
			pod := foreign(name, "8")
			if controls {
				pod = madeBy("apps/v1", "ReplicaSet", name, g.clock.Now())
			}
			pod.Annotations = map[string]string{rqv1.AnnotationGroup: "g", rqv1.AnnotationGroupSize: "2"}
			pods = append(pods, pod)
		}
		g.groups.note(pods[0])
		g.groups.note(pods[1])
		g.want("it is whole", pods[0], "create")
		g.runsWith(pods[0], pods[1])
		g.want("it runs", pods[0])
		g.groups.note(pods[2])
		if !controls {
			g.want("another has come", pods[0])
			continue
		}
		g.want("another has come", pods[0], "patch")
		want := &rqv1.RunMalleable{MinTotalGPUs: 16, MaxTotalGPUs: 24, StepGPUs: 8, DesiredTotalGPUs: ptr.To[int32](24)}
		if diff := cmp.Diff(want, g.run().Spec.Malleable); diff != "" {
			t.Errorf("the Run's widths (-want +got):\n%s", diff)
		}
		g.want("nothing is new", pods[0])
	}
}

// TestARunThatMayNotBeWidened stays as it is, and its group goes on.
func TestARunThatMayNotBeWidened(t *testing.T) {
	g, a := runningGangOf2(t)
	g.groups.note(ofGang("c"))
	g.faults = append(g.faults, fault{on: "patch runs", err: forbidden})
	g.want("another has come", a)
	if m := g.run().Spec.Malleable; m != nil {
		t.Errorf("its widths are %+v", m)
	}
}

// TestAGroupGrowsForWhoMayPay: what replaces pods comes from who has been asked, but more pods than there were are
// spending anew (R10).
func TestAGroupGrowsForWhoMayPay(t *testing.T) {
	g, a := runningGangOf2(t)
	c := ofGang("c")
	g.denied = true
	g.clock.Step(2 * allowedFor)
	g.groups.note(c)
	wrote, after := g.looks(a)
	if len(wrote) > 0 || after <= 0 || after > groupRest {
		t.Errorf("the right is taken away: Runs were written so: %v, and it is looked at again after %s", wrote, after)
	}
	g.clock.Step(groupRest)
	g.want("it is not granted", a)
	if told := g.toldOf(c); !strings.Contains(told, "may not spend as o") {
		t.Errorf("it is told %q", told)
	}
	g.denied = false
	g.clock.Step(groupRest)
	g.want("it is granted", a, "patch")
}

// TestAGroupThatHasRunIsNotReadAnew by a process that begins while it waits again: it keeps its Run, and that its place
// in line, although it has another number of pods than it was made for.
func TestAGroupThatHasRunIsNotReadAnew(t *testing.T) {
	g, _ := gangOf2(t)
	a, b := ofGang("a"), ofGang("b")
	g.groups.note(a)
	g.groups.note(b)
	g.want("it is whole", a, "create")
	run := g.run()
	run.Status.Phase, run.Status.Attempt = rqv1.RunPending, 1
	if err := g.kinds.Status().Update(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	g.groups.known, g.groups.at = map[group.Key]*pods{}, map[types.UID]group.Key{}
	for _, pod := range []*corev1.Pod{a, b, ofGang("c")} {
		g.groups.note(pod)
	}
	g.want("three pods wait", a, "patch")
	g.want("nothing is new", a)
}

// TestAPodWithoutGPUsWaitsForItsGroup, which may ask for GPUs, as long as a group rests; one that says that it is all
// of its group does not wait.
func TestAPodWithoutGPUsWaitsForItsGroup(t *testing.T) {
	for size, waits := range map[string]time.Duration{"3": groupRest, "1": 0} {
		g := newGrouped(t)
		launcher := foreign("launcher", "")
		launcher.CreationTimestamp.Time = g.clock.Now()
		launcher.Annotations = map[string]string{rqv1.AnnotationGroup: "gang", rqv1.AnnotationGroupSize: size}
		g.groups.note(launcher)
		if _, after := g.looks(launcher); after != waits || (g.book.HoldsBack(launcher) != "") != (waits > 0) {
			t.Errorf("one of %s is looked at after %s, want %s, and told %q", size, after, waits, g.book.HoldsBack(launcher))
		}
		g.clock.Step(groupRest)
		if _, after := g.looks(launcher); after != 0 || g.book.HoldsBack(launcher) != "" {
			t.Errorf("one of %s waits on: looked at after %s, told %q", size, after, g.book.HoldsBack(launcher))
		}
	}
}

// TestARunWithoutPodsGoes once its places have been kept for long enough, although pods wait which get no ranks: those
// of others who may not pay, and those for which something else is to happen first. The group is a gang again when
// its pods come, and would have come back pod by pod.
func TestARunWithoutPodsGoes(t *testing.T) {
	gate := func(pod *corev1.Pod) {
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/quota"}}
	}
	for name, c := range map[string]struct {
		is   func(*corev1.Pod)
		goes bool
	}{
		"gated":       {gate, true},
		"may not pay": {func(pod *corev1.Pod) { pod.Spec.ServiceAccountName = "other" }, true},
		"replaces":    {func(*corev1.Pod) {}, false},
	} {
		g, a := runningGangOf2(t)
		g.payersAre(map[string]bool{"default": true})
		for _, gone := range []string{"a", "b"} {
			if err := g.kube.CoreV1().Pods("ns").Delete(t.Context(), gone, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		next := ofGang("c")
		c.is(next)
		g.groups.note(next)
		want := time.Duration(0)
		if c.goes {
			want = g.groups.deadline
		}
		if wrote, after := g.looks(a); len(wrote) > 0 || c.goes && (after <= 0 || after > want) {
			t.Errorf("%s: at once Runs were written so: %v, and it is looked at again after %s", name, wrote, after)
		}
		g.clock.Step(g.groups.deadline)
		var wrote []string
		if c.goes {
			wrote = []string{"delete"}
		}
		g.want(name, a, wrote...)
	}
}

// TestAPodThatSaysSomethingElse than those of a group that waits is told so: the group is not read anew with it.
func TestAPodThatSaysSomethingElse(t *testing.T) {
	g := newGrouped(t)
	g.named("o")
	first, other := inGroup("a", ""), inGroup("b", "")
	other.Annotations[rqv1.AnnotationMaxDuration] = "1h"
	g.groups.note(first)
	g.want("it is new", first, "create")
	g.has(first)
	run := g.run()
	run.Status.Phase = rqv1.RunPending
	if err := g.kinds.Status().Update(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	g.groups.note(other)
	g.want("another has come", first)
	g.clock.Step(groupRest)
	g.want("it waits", first)
	if told := g.toldOf(other); !strings.Contains(told, "they must say the same") {
		t.Errorf("it is told %q", told)
	}
	if told := g.toldOf(first); strings.Contains(told, "they must say the same") {
		t.Error("so is the one that has its rank")
	}
}
