package plugins

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// ofGroup is an entry of the queue that is no pod.
type ofGroup struct {
	fwk.QueuedEntityInfo
	at time.Time
}

func (g ofGroup) GetTimestamp() time.Time { return g.at }

// entry is a pod in the queue, since some seconds after noon.
func entry(t *testing.T, pod *corev1.Pod, seconds int) fwk.QueuedEntityInfo {
	t.Helper()
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		t.Fatal(err)
	}
	return &framework.QueuedPodInfo{PodInfo: info,
		QueueingParams: framework.QueueingParams{Timestamp: noon.Add(time.Duration(seconds) * time.Second)}}
}

// TestTheQueuesOrder is by the age of Runs, then by rank, whenever the pods came; others come by their own age.
func TestTheQueuesOrder(t *testing.T) {
	g := newGang(t, 3)
	g.book.SetRun(&rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "older", UID: "older", Generation: 1,
		CreationTimestamp: metav1.NewTime(noon.Add(-time.Minute))}, Spec: rqv1.RunSpec{Owner: "org",
		Resources: rqv1.RunResources{GPUType: "H100", TotalGPUs: 16}}})
	web := func(name string, seconds int) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name),
			CreationTimestamp: metav1.NewTime(noon.Add(time.Duration(seconds) * time.Second))}}
	}
	older := []*corev1.Pod{rankOf("older", 0), rankOf("older", 1)}
	for _, pod := range older {
		g.book.SetMember(pod)
	}
	want := []*corev1.Pod{web("earliest", -120), older[0], older[1], web("between", -30), g.pods[0], g.pods[1], g.pods[2],
		web("latest", 30)}
	var entries []fwk.QueuedEntityInfo
	for i, pod := range want {
		entries = append(entries, entry(t, pod, -i)) // when they came to the queue does not matter
	}
	slices.Reverse(entries)
	slices.SortStableFunc(entries, func(x, y fwk.QueuedEntityInfo) int {
		switch {
		case g.Less(x, y):
			return -1
		case g.Less(y, x):
			return 1
		}
		return 0
	})
	for i, e := range entries {
		if got := podOf(e); got.Name != want[i].Name {
			t.Errorf("%d: %s, want %s", i, got.Name, want[i].Name)
		}
	}
	early, late := ofGroup{at: noon.Add(-time.Hour)}, ofGroup{at: noon.Add(time.Hour)}
	if e := entries[0]; !g.Less(early, e) || g.Less(e, early) || !g.Less(e, late) || g.Less(late, e) {
		t.Error("a group of pods does not come by its own age")
	}
}

// TestPodsThatAreNoRuns go where kube-scheduler's own rules have them go, unless they ask for GPUs: those are kept out
// of the queue until their group has been looked at.
func TestPodsThatAreNoRuns(t *testing.T) {
	asks := func(gpus string) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "web"}}
		if gpus != "" {
			pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(gpus)}}}}
		}
		return pod
	}
	node := framework.NewNodeInfo()
	node.SetNode(nodeNamed("n0"))
	for name, test := range map[string]struct {
		pod       *corev1.Pod
		preFilter fwk.Code
		filter    fwk.Code
		queue     fwk.Code
	}{
		"one that asks for no GPUs":   {asks(""), fwk.Skip, fwk.Success, fwk.Success},
		"one that asks for none, too": {asks("0"), fwk.Skip, fwk.Success, fwk.Success},
		"one that asks for GPUs": {asks("1"), fwk.UnschedulableAndUnresolvable, fwk.UnschedulableAndUnresolvable,
			fwk.UnschedulableAndUnresolvable},
	} {
		g := newGang(t, 1)
		_, preFilter := g.PreFilter(t.Context(), nil, test.pod, nil)
		filter := g.Filter(t.Context(), nil, test.pod, node)
		got := []fwk.Code{preFilter.Code(), filter.Code(), g.PreEnqueue(t.Context(), test.pod).Code()}
		if diff := cmp.Diff([]fwk.Code{test.preFilter, test.filter, test.queue}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if _, status := g.PostFilter(t.Context(), nil, test.pod, nil); status.Code() != fwk.Unschedulable {
			t.Errorf("%s: PostFilter: %v", name, status)
		}
	}
}

// TestWhatPostFilterTellsTheBook: of a node that another rule has turned down, and of no other.
func TestWhatPostFilterTellsTheBook(t *testing.T) {
	said := func(plugin string, code fwk.Code) func(string) *framework.NodeToStatus {
		return func(node string) *framework.NodeToStatus {
			nodes := framework.NewDefaultNodeToStatus()
			nodes.Set(node, fwk.NewStatus(code, "no").WithPlugin(plugin))
			return nodes
		}
	}
	for name, test := range map[string]struct {
		turned func(node string) *framework.NodeToStatus
		keeps  bool
	}{
		"another plugin has turned it down":   {said("NodeAffinity", fwk.Unschedulable), false},
		"our own Filter has":                  {said(Name, fwk.UnschedulableAndUnresolvable), false},
		"our own PreFilter had no node, then": {said(Name, fwk.Unschedulable), true},
	} {
		g := newGang(t, 2)
		g.PreFilter(t.Context(), nil, g.pods[0], nil)
		node := g.book.Assigned("run-0")
		if _, status := g.PostFilter(t.Context(), nil, g.pods[0], test.turned(node)); status.Code() != fwk.Unschedulable {
			t.Errorf("%s: %v", name, status)
		}
		if still := g.book.Assigned("run-0"); (still == node) != test.keeps {
			t.Errorf("%s: it is to go to %q, and was to go to %q", name, still, node)
		}
	}
	g := newGang(t, 2)
	g.book.RemoveNode("n1")
	if _, status := g.PreFilter(t.Context(), nil, g.pods[0], nil); status.Code() != fwk.Unschedulable ||
		status.Message() == "" {
		t.Fatalf("without room: %v", status)
	}
	if _, status := g.PostFilter(t.Context(), nil, g.pods[0], framework.NewDefaultNodeToStatus()); status.Code() !=
		fwk.Unschedulable {
		t.Errorf("without room: %v", status)
	}
}

// TestTheFullestNodeIsBest for a pod that no plan has a node for.
func TestTheFullestNodeIsBest(t *testing.T) {
	g := newGang(t, 2)
	held := rankOf("other", 0)
	held.Labels, held.OwnerReferences, held.Spec.NodeName = nil, nil, "n1"
	held.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"] = resource.MustParse("4")
	g.book.SetPod(held)
	score := func(name string) int64 {
		info := framework.NewNodeInfo()
		info.SetNode(nodeNamed(name))
		score, status := g.Score(t.Context(), nil, held, info)
		if !status.IsSuccess() {
			t.Fatal(status)
		}
		return score
	}
	if empty, half := score("n0"), score("n1"); empty >= half || half > fwk.MaxScore {
		t.Errorf("empty %d, half full %d", empty, half)
	}
}

// TestArguments are read from a profile, and refused where they say nothing that is known.
func TestArguments(t *testing.T) {
	for name, test := range map[string]struct {
		raw  runtime.Object
		says string
	}{
		"none":              {},
		"some":              {raw: &runtime.Unknown{Raw: []byte(`{"gangDeadline": "1m"}`)}},
		"a field too many":  {raw: &runtime.Unknown{Raw: []byte(`{"gangDeadlines": "1m"}`)}, says: "gangDeadlines"},
		"of another plugin": {raw: &corev1.Pod{}, says: "got *v1.Pod"},
	} {
		args, err := ParseArgs(test.raw)
		switch {
		case test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)), test.says == "" && err != nil:
			t.Errorf("%s: %v, want %q", name, err, test.says)
		case err == nil && (args.GangDeadline.Duration == time.Minute) != (test.raw != nil):
			t.Errorf("%s: the deadline is %s", name, args.GangDeadline.Duration)
		}
	}
}

// loud is a profile of a scheduler that tells what it is told.
type loud struct {
	framework.Framework
	told []string
}

type recorder struct {
	events.EventRecorderLogger
	to *loud
}

func (l *loud) EventRecorder() events.EventRecorderLogger { return recorder{to: l} }

func (r recorder) WithLogger(klog.Logger) events.EventRecorderLogger { return r }

func (r recorder) Eventf(regarding, _ runtime.Object, _, reason, _, _ string, _ ...any) {
	r.to.told = append(r.to.told, fmt.Sprintf("%s %s", reason, regarding.(metav1.Object).GetName()))
}

// TestTellOfRuns tells everything but that a pod of a Run is scheduled, which its Lease tells; of pods of Runs
// elsewhere, if there is somewhere else.
func TestTellOfRuns(t *testing.T) {
	web := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	others := []string{"Scheduled web", "Scheduled n0", "FailedScheduling web", "FailedScheduling n0"}
	for name, c := range map[string]struct {
		elsewhere bool
		own       []string
		runs      []string
	}{
		"elsewhere": {elsewhere: true, own: others, runs: []string{"FailedScheduling run-0"}},
		"itself":    {own: slices.Insert(slices.Clone(others), 2, "FailedScheduling run-0")},
	} {
		own, runs := &loud{}, &loud{}
		s := &scheduler.Scheduler{Profiles: profile.Map{"jobtree": own}}
		var to events.EventRecorder
		if c.elsewhere {
			to = runs.EventRecorder()
		}
		TellOfRuns(s, to)
		for _, to := range []events.EventRecorderLogger{s.Profiles["jobtree"].EventRecorder(),
			s.Profiles["jobtree"].EventRecorder().WithLogger(klog.Background())} {
			own.told, runs.told = nil, nil
			for _, reason := range []string{"Scheduled", "FailedScheduling"} {
				to.Eventf(rankOf("run", 0), nil, corev1.EventTypeNormal, reason, "Binding", "")
				to.Eventf(web, nil, corev1.EventTypeNormal, reason, "Binding", "")
				to.Eventf(nodeNamed("n0"), nil, corev1.EventTypeNormal, reason, "Binding", "")
			}
			if diff := cmp.Diff([][]string{c.own, c.runs}, [][]string{own.told, runs.told}); diff != "" {
				t.Errorf("%s: told (-want +got):\n%s", name, diff)
			}
		}
	}
}
