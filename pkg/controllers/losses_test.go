package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
)

// fleet is an API server with nodes, all of which hold Leases, and the process that watches over them.
type fleet struct {
	*server
	nodes *nodeJudge
	limit *lossLimit
	queue *soon
	clock *clocktesting.FakeClock
	told  *events.FakeRecorder
}

// newFleet has heard from the kubelets of all nodes at noon.
func newFleet(t *testing.T, size int) *fleet {
	t.Helper()
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{clock: clocktesting.NewFakeClock(noon), told: events.NewFakeRecorder(1000)}
	var objects []runtime.Object
	lease := closed("b", "held")
	lease.Spec.Slice.Nodes = nil
	for i := range size {
		node := nodeOf8(nameOf(i))
		objects = append(objects, node, heartbeatOf(node.Name, noon))
		lease.Spec.Slice.Nodes = append(lease.Spec.Slice.Nodes, rqv1.NodeGPUs{Name: node.Name, GPUs: 8})
	}
	f.server = newServer(t, objects...)
	f.limit = &lossLimit{book: book.New(args), kube: f.kube, events: f.told, clock: f.clock, seen: newNodeWatch(args)}
	f.queue = &soon{TypedDelayingInterface: f.limit.seen.queue}
	f.limit.seen.queue = f.queue
	f.nodes = &nodeJudge{book: f.limit.book, kube: f.kube, events: f.told, clock: f.clock, seen: f.limit.seen,
		limit: f.limit, leads: func() bool { return true },
		leases: cache.NewSharedIndexInformer(nil, nil, 0, cache.Indexers{byNode: nodesOf})}
	if err := f.nodes.leases.GetStore().Add(lease); err != nil {
		t.Fatal(err)
	}
	for i := range size {
		f.see(nodeOf8(nameOf(i)))
		f.nodes.seen.setHeartbeat(heartbeatOf(nameOf(i), noon), noon)
	}
	f.nodes.seen.contact.hear(true, noon)
	return f
}

func nameOf(index int) string { return fmt.Sprintf("n%02d", index) }

func heartbeatOf(node string, at time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: node},
		Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: at}}}
}

// see has a watch bring a node.
func (f *fleet) see(node *corev1.Node) {
	f.nodes.book.SetNode(node)
	f.nodes.seen.setNode(node, f.clock.Now())
}

// stored is a node as the API server has it.
func (f *fleet) stored(t *testing.T, name string) *corev1.Node {
	t.Helper()
	node, err := f.kube.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// store has the API server have something else, which no watch brings.
func (f *fleet) store(t *testing.T, o runtime.Object, resource string) {
	t.Helper()
	gvr := corev1.SchemeGroupVersion.WithResource(resource)
	if resource == "leases" {
		gvr = coordinationv1.SchemeGroupVersion.WithResource(resource)
	}
	if err := f.kube.Tracker().Update(gvr, o, o.(metav1.Object).GetNamespace()); err != nil {
		t.Fatal(err)
	}
}

// silence has time go by in which only some kubelets are heard, those from an index on.
func (f *fleet) silence(t *testing.T, d time.Duration, from, size int) {
	t.Helper()
	for range d / (5 * time.Second) {
		f.clock.Step(5 * time.Second)
		f.nodes.seen.contact.hear(true, f.clock.Now())
		for i := from; i < size; i++ {
			renewed := heartbeatOf(nameOf(i), f.clock.Now())
			f.store(t, renewed, "leases")
			f.nodes.seen.setHeartbeat(renewed, f.clock.Now())
		}
	}
}

// reasons are those of the events that have been told.
func (f *fleet) reasons() []string {
	var out []string
	for len(f.told.Events) > 0 {
		out = append(out, strings.Fields(<-f.told.Events)[1])
	}
	return out
}

func outOf(node *corev1.Node) *corev1.Node {
	outOfService(node)
	return node
}

// TestALossIsRecordedAsTheAPIServerHasIt has the first of two nodes lost, as it looks from here.
func TestALossIsRecordedAsTheAPIServerHasIt(t *testing.T) {
	isOut := func(f *fleet) {
		f.see(outOf(nodeOf8("n00")))
		f.store(t, outOf(nodeOf8("n00")), "nodes")
	}
	isSilent := func(f *fleet) { f.silence(t, 30*time.Second, 1, 2) }
	recorded := []string{"patch nodes n00"}
	for name, test := range map[string]struct {
		happens func(f *fleet)
		faults  []fault
		wrote   []string
		again   int // how many nodes are judged again in a moment
		told    []string
	}{
		"nothing happens":   {happens: func(*fleet) {}},
		"it is taken out":   {happens: isOut, wrote: recorded, told: []string{"Lost"}},
		"its kubelet stops": {happens: isSilent, wrote: recorded, told: []string{"Lost"}},
		"its kubelet has just been heard, says the API server": {happens: func(f *fleet) {
			isSilent(f)
			f.store(t, heartbeatOf("n00", f.clock.Now()), "leases")
		}},
		"its kubelet has no lease any more, says the API server": {happens: func(f *fleet) {
			isSilent(f)
			f.store(t, &coordinationv1.Lease{ObjectMeta: heartbeatOf("n00", noon).ObjectMeta}, "leases")
		}},
		"nobody can be asked when its kubelet was heard": {happens: isSilent,
			faults: []fault{{on: "get leases", err: broken500}}, again: 1},
		"nobody can be asked how it is": {happens: isOut, faults: []fault{{on: "get nodes", err: broken500}}, again: 1},
		"somebody has recorded it already": {happens: func(f *fleet) {
			isOut(f)
			known := outOf(nodeOf8("n00"))
			known.Spec.Unschedulable, known.Annotations = true, map[string]string{rqv1.AnnotationLost: "by hand"}
			f.store(t, known, "nodes")
		}},
		"another has its name by now": {happens: func(f *fleet) {
			isOut(f)
			other := outOf(nodeOf8("n00"))
			other.UID = "other"
			f.store(t, other, "nodes")
		}, wrote: recorded, told: []string{"Lost"}}, // of which it is confirmed as well
		"which may not be recorded": {happens: isOut, faults: []fault{{on: "patch nodes", err: forbidden}}, again: 1},
		"which is recorded, and denied": {happens: isOut,
			faults: []fault{{on: "patch", err: broken500, stored: true}}, wrote: recorded, again: 1},
		"made anew as it is recorded": {happens: isOut, faults: []fault{{on: "patch nodes", err: conflict}}, again: 1},
		"gone as it is recorded": {happens: isOut, faults: []fault{{on: "patch nodes", err: notFound}},
			told: []string{"Lost"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 2)
			test.happens(f)
			f.faults = test.faults
			f.nodes.judge(t.Context(), []string{"n00", "n01"})
			f.faults = nil
			if diff := cmp.Diff(test.wrote, f.written()); diff != "" {
				t.Errorf("written (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.told, f.reasons()); diff != "" || f.queue.added != test.again {
				t.Errorf("%d are judged again, want %d; told (-want +got):\n%s", f.queue.added, test.again, diff)
			}
			if test.wrote != nil {
				if _, lost := nodeloss.Recorded(f.stored(t, "n00")); !lost {
					t.Errorf("what is stored is no record: %v", f.stored(t, "n00").Annotations)
				}
			}
			f.nodes.judge(t.Context(), []string{"n00", "n01"}) // nothing of it is written twice
			if again := f.written(); test.wrote != nil && len(again) > 0 {
				t.Errorf("judged again, written is %v", again)
			}
		})
	}
}

// TestARecordIsTakenBackWithTheCordon has somebody uncordon a node that was lost.
func TestARecordIsTakenBackWithTheCordon(t *testing.T) {
	for name, test := range map[string]struct {
		faults []fault
		again  int
		left   bool
	}{
		"as it should be":                    {},
		"the API server is not itself":       {faults: []fault{{on: "patch nodes", err: broken500}}, again: 1, left: true},
		"somebody writes it at the time":     {faults: []fault{{on: "patch nodes", err: conflict}}, left: true},
		"it is gone":                         {faults: []fault{{on: "patch nodes", err: notFound}}, left: true},
		"this process does not lead anymore": {faults: []fault{{on: "patch nodes", err: fenced}}, again: 1, left: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 1)
			node := nodeOf8("n00")
			node.Annotations = map[string]string{rqv1.AnnotationLost: "it was silent", "other": "kept"}
			f.see(node)
			f.store(t, node, "nodes")
			f.faults = test.faults
			f.nodes.judge(t.Context(), []string{"n00"})
			f.faults = nil
			annotations := f.stored(t, "n00").Annotations
			if _, left := annotations[rqv1.AnnotationLost]; left != test.left || annotations["other"] != "kept" {
				t.Errorf("left are %v", annotations)
			}
			if f.queue.added != test.again {
				t.Errorf("%d are judged again, want %d", f.queue.added, test.again)
			}
		})
	}
}

// TestNodesSayThatTheirLossIsHeldBack has so many kubelets fall silent that none is taken for lost, and come back.
func TestNodesSayThatTheirLossIsHeldBack(t *testing.T) {
	f := newFleet(t, 10)
	marked := func() []string {
		var out []string
		for i := range 10 {
			if f.stored(t, nameOf(i)).Annotations[rqv1.AnnotationHeldBack] != "" {
				out = append(out, nameOf(i))
			}
		}
		return out
	}
	judge := func() {
		f.nodes.judge(t.Context(), []string{"n00", "n01", "n02", "n03", "n04"})
		f.limit.review(f.clock.Now())
		f.limit.mark(t.Context(), f.clock.Now())
	}
	five := []string{"n00", "n01", "n02", "n03", "n04"}
	for _, scene := range []struct {
		what    string
		happens func()
		faults  []fault
		marked  []string
		told    int
	}{
		{what: "all are heard", happens: func() { f.silence(t, 30*time.Second, 0, 10) }},
		{what: "five are silent, and one of them cannot be written", happens: func() { f.silence(t, 30*time.Second, 5, 10) },
			faults: []fault{{on: "patch nodes n02", err: broken500}}, marked: []string{"n00", "n01", "n03", "n04"}, told: 4},
		{what: "it can be by now", marked: five, told: 1},
		{what: "nothing happens", marked: five},
		{what: "four are back, and the API server is not itself", happens: func() { f.silence(t, 5*time.Second, 1, 10) },
			faults: []fault{{on: "patch nodes", err: broken500}}, marked: five},
		{what: "it is again", marked: nil, told: 1}, // by which the last one is taken for lost
	} {
		if scene.happens != nil {
			scene.happens()
		}
		f.faults = scene.faults
		judge()
		f.faults = nil
		for i := range 10 { // a watch brings what has been written
			f.see(f.stored(t, nameOf(i)))
		}
		told := f.reasons()
		if diff := cmp.Diff(scene.marked, marked()); diff != "" || len(told) != scene.told {
			t.Fatalf("%s: told %v, want %d; marked (-want +got):\n%s", scene.what, told, scene.told, diff)
		}
	}
	if !slices.Contains(f.written(), "patch nodes n00") {
		t.Error("nothing was written")
	}
	if _, lost := nodeloss.Recorded(f.stored(t, "n00")); !lost {
		t.Error("the one that stays silent is not taken for lost")
	}
}

// TestMarksOfAPredecessor are taken back once kubelets have had the time to be silent.
func TestMarksOfAPredecessor(t *testing.T) {
	f := newFleet(t, 2)
	node := nodeOf8("n00")
	node.Annotations = map[string]string{rqv1.AnnotationHeldBack: "it is silent"}
	f.see(node)
	f.store(t, node, "nodes")
	for _, step := range []struct {
		later time.Duration
		wrote []string
	}{{later: 25 * time.Second}, {later: 5 * time.Second, wrote: []string{"patch nodes n00"}}, {later: time.Minute}} {
		f.silence(t, step.later, 0, 2)
		f.limit.mark(t.Context(), f.clock.Now())
		if diff := cmp.Diff(step.wrote, f.written()); diff != "" {
			t.Errorf("%s later (-want +got):\n%s", step.later, diff)
		}
	}
	if told := f.reasons(); len(told) > 0 {
		t.Errorf("told %v", told)
	}
}
