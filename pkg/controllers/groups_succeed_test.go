package controllers

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/group"
)

// madeBy is a pod of which a controller of a kind makes others, each under a name that the API server finds.
func madeBy(api, kind, name string, now time.Time) *corev1.Pod {
	pod, controls := foreign(name, "8"), true
	pod.GenerateName, pod.CreationTimestamp = "web-", metav1.NewTime(now)
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: api, Kind: kind, Name: "web", UID: "maker",
		Controller: &controls}}
	return pod
}

// withObject is an API server that has an object of some kind.
type withObject struct {
	client.WithWatch
	is map[string]any
}

func (c *withObject) Get(ctx context.Context, key client.ObjectKey, o client.Object, how ...client.GetOption) error {
	object, is := o.(*unstructured.Unstructured)
	if !is || object.GetKind() != c.is["kind"] {
		return c.WithWatch.Get(ctx, key, o, how...)
	}
	object.Object = maps.Clone(c.is)
	return nil
}

// at is the group that a pod waits in.
func (g *grouped) at(pod *corev1.Pod) string {
	g.groups.mu.Lock()
	defer g.groups.mu.Unlock()
	return g.groups.at[pod.UID].String()
}

// runsAlone is a Run that runs with a pod which a controller has made.
func runsAlone(t *testing.T, api, kind string) (g *grouped, pod *corev1.Pod) {
	t.Helper()
	g = newGrouped(t)
	g.named("o")
	pod = madeBy(api, kind, "web-a", g.clock.Now())
	g.groups.note(pod)
	g.want("it is new", pod, "create")
	if of := g.run().OwnerReferences; len(of) != 1 || of[0].UID != "maker" || of[0].Controller != nil {
		t.Errorf("the Run goes with %v", of)
	}
	g.runsWith(pod)
	g.want("it runs", pod)
	return g, pod
}

// lost has a pod with a rank go, as the informers tell it.
func (g *grouped) lost(pod *corev1.Pod) {
	g.t.Helper()
	g.lostOf(g.run(), pod)
}

// lostOf likewise has a pod of one of several Runs go.
func (g *grouped) lostOf(run *rqv1.Run, pod *corev1.Pod) {
	g.t.Helper()
	if err := g.kube.CoreV1().Pods("ns").Delete(g.t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		g.t.Fatal(err)
	}
	ranked := pod.DeepCopy()
	ranked.Labels = map[string]string{rqv1.LabelRun: run.Name, rqv1.LabelRunUID: string(run.UID), rqv1.LabelIndex: "0",
		rqv1.LabelSource: string(rqv1.SourcePods)}
	g.groups.drop(ranked)
	g.see()
	g.groups.gone(ranked)
}

// TestThePodThatAControllerMakesNext takes the place of the one that is gone, in its Run, whatever the two are called:
// what is kept for the rank, its spare, and, where the Run waits, its place in line.
func TestThePodThatAControllerMakesNext(t *testing.T) {
	for _, of := range []struct{ api, kind string }{{"apps/v1", "ReplicaSet"}, {"batch/v1", "Job"}, {"x/v1", "Any"}} {
		t.Run(of.kind, func(t *testing.T) {
			g, was := runsAlone(t, of.api, of.kind)
			run := g.run()
			g.lost(was)
			g.want("its pod is gone", was)
			g.clock.Step(10 * time.Second)
			is := madeBy(of.api, of.kind, "web-b", g.clock.Now())
			g.groups.note(is)
			g.want("another is made", is)
			if at := g.at(is); at != "Pod/web-a" {
				t.Errorf("the next pod is in group %s", at)
			}
			g.want("it joins", was)
			g.wantOffered("it joins", "web-b")
			if g.run().UID != run.UID {
				t.Error("the Run is another")
			}
			g.groups.note(is.DeepCopy())
			if at := g.at(is); at != "Pod/web-a" {
				t.Errorf("once it has changed it is in group %s", at)
			}
			further := madeBy(of.api, of.kind, "web-c", g.clock.Now())
			g.groups.note(further)
			g.want("a third one is made", further, "create")
		})
	}
}

// TestAPodThatComesBeforeTheOneItReplacesGoes: a ReplicaSet makes the next as soon as one is told to go, which may be
// heard of later.
func TestAPodThatComesBeforeTheOneItReplacesGoes(t *testing.T) {
	g, was := runsAlone(t, "apps/v1", "ReplicaSet")
	run := g.run()
	is := madeBy("apps/v1", "ReplicaSet", "web-b", g.clock.Now())
	g.groups.note(is)
	g.want("another is made", is, "create")
	now := metav1.NewTime(g.clock.Now())
	goes := was.DeepCopy()
	goes.Labels = map[string]string{rqv1.LabelRun: run.Name, rqv1.LabelRunUID: string(run.UID), rqv1.LabelIndex: "0",
		rqv1.LabelSource: string(rqv1.SourcePods)}
	goes.Spec.NodeName, goes.DeletionTimestamp, goes.Finalizers = "n0", &now, []string{"kubelet"}
	g.update(goes)
	g.groups.note(goes)
	g.groups.member(goes)
	g.want("the first is told to go", is, "delete")
	if at := g.at(is); at != "Pod/web-a" {
		t.Errorf("the next pod is in group %s", at)
	}
	g.want("it joins", was)
	if names := g.offered(); !cmp.Equal(names, []string{"web-b"}) {
		t.Errorf("%v are offered", names)
	}
}

// TestNoPlaceIsTakenByAPodOfAnotherKind: of another controller, or one that asks for something else.
func TestNoPlaceIsTakenByAPodOfAnotherKind(t *testing.T) {
	for name, change := range map[string]func(*corev1.Pod){
		"of another controller": func(pod *corev1.Pod) { pod.OwnerReferences[0].UID = "another" },
		"of nobody":             func(pod *corev1.Pod) { pod.OwnerReferences = nil },
		"with a name":           func(pod *corev1.Pod) { pod.GenerateName = "" },
		"with other GPUs":       func(pod *corev1.Pod) { pod.Spec.Containers[0].Resources.Requests = gpus("4") },
		"of another class":      func(pod *corev1.Pod) { pod.Spec.PriorityClassName = "high" },
		"of another owner":      func(pod *corev1.Pod) { pod.Annotations = map[string]string{rqv1.AnnotationOwner: "p"} },
	} {
		t.Run(name, func(t *testing.T) {
			g, was := runsAlone(t, "apps/v1", "ReplicaSet")
			g.lost(was)
			is := madeBy("apps/v1", "ReplicaSet", "web-b", g.clock.Now())
			change(is)
			if requests := is.Spec.Containers[0].Resources; !cmp.Equal(requests.Requests, requests.Limits) {
				is.Spec.Containers[0].Resources.Limits = requests.Requests
			}
			g.groups.note(is)
			g.want("it is made", is, "create")
		})
	}
}

// TestAPlaceThatItsControllerLeaves is not kept: it asks for fewer pods.
func TestAPlaceThatItsControllerLeaves(t *testing.T) {
	for name, test := range map[string]struct {
		api, kind string
		spec      map[string]any
		status    map[string]any
		want      []string
	}{
		"a ReplicaSet for one":    {"apps/v1", "ReplicaSet", map[string]any{"replicas": int64(1)}, nil, nil},
		"a ReplicaSet for none":   {"apps/v1", "ReplicaSet", map[string]any{"replicas": int64(0)}, nil, []string{"delete"}},
		"a Job":                   {"batch/v1", "Job", map[string]any{}, nil, nil},
		"a Job that is suspended": {"batch/v1", "Job", map[string]any{"suspend": true}, nil, []string{"delete"}},
		"a Job with all its successes": {"batch/v1", "Job", map[string]any{"completions": int64(2)},
			map[string]any{"succeeded": int64(2)}, []string{"delete"}},
		"a kind that does not say": {"x/v1", "Any", map[string]any{}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g, was := runsAlone(t, test.api, test.kind)
			object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": test.api, "kind": test.kind,
				"metadata": map[string]any{"namespace": "ns", "name": "web", "uid": "maker"}, "spec": test.spec}}
			if test.status != nil {
				object.Object["status"] = test.status
			}
			g.groups.client = &withObject{WithWatch: g.groups.client, is: object.Object}
			g.lost(was)
			g.want("its pod is gone", was)
			g.clock.Step(settles)
			g.want("it has been gone for a moment", was, test.want...)
		})
	}
}

// TestAPlaceWhoseNextPodIsThereIsKept: that one waits, and has not been looked at yet.
func TestAPlaceWhoseNextPodIsThereIsKept(t *testing.T) {
	g, was := runsAlone(t, "apps/v1", "ReplicaSet")
	g.groups.client = &withObject{WithWatch: g.groups.client, is: map[string]any{"apiVersion": "apps/v1",
		"kind": "ReplicaSet", "metadata": map[string]any{"namespace": "ns", "name": "web", "uid": "maker"},
		"spec": map[string]any{"replicas": int64(1)}}}
	g.lost(was)
	is := madeBy("apps/v1", "ReplicaSet", "web-b", g.clock.Now())
	g.groups.note(is)
	for range 3 {
		g.want("its pod is gone", was)
		g.clock.Step(settles)
	}
	g.want("the next is looked at", is)
	if at := g.at(is); at != "Pod/web-a" {
		t.Errorf("the next pod is in group %s", at)
	}
}

// TestAPlaceIsTakenOnce: of two pods that come for it one has it, as long as it waits, as its rank is not seen, and as
// it has changed since it was looked at; a pod of another namespace may name any controller.
func TestAPlaceIsTakenOnce(t *testing.T) {
	g, was := runsAlone(t, "apps/v1", "ReplicaSet")
	g.lost(was)
	place, by := group.Of(was).Key, makerID{"ns", "maker"}
	next := func(name string) *corev1.Pod { return madeBy("apps/v1", "ReplicaSet", name, g.clock.Now()) }
	one, two, strange, gone := next("web-b"), next("web-c"), next("web-d"), next("web-e")
	strange.Namespace = "elsewhere"
	for _, pod := range []*corev1.Pod{one, two, strange} {
		g.groups.note(pod)
	}
	moves := func(pod *corev1.Pod) bool {
		return g.groups.moves(pod, group.Of(pod).Key, place, makerID{pod.Namespace, "maker"})
	}
	if moves(strange) {
		t.Error("a pod of another namespace has the place")
	}
	if moves(gone) {
		t.Error("a pod that is gone has the place")
	}
	if !moves(one) || moves(two) {
		t.Error("it is not the first alone that has the place")
	}
	if places := g.groups.vacancies(by); len(places) != 0 {
		t.Errorf("free are %v", places)
	}
	ranked := one.DeepCopy()
	ranked.Labels = map[string]string{rqv1.LabelRun: g.run().Name, rqv1.LabelSource: string(rqv1.SourcePods)}
	g.groups.note(ranked)
	g.groups.vacate(place)
	if places := g.groups.vacancies(by); len(places) != 0 || moves(two) {
		t.Errorf("before its rank is seen free are %v", places)
	}
}

// TestPlacesThatAControllerLeaves are as many as it has too many: the last ones.
func TestPlacesThatAControllerLeaves(t *testing.T) {
	of := func(name string) group.Key { return group.Key{Namespace: "ns", Kind: "Pod", Name: name} }
	in := &maker{runs: map[group.Key]bool{}, vacant: map[group.Key]int{of("web-1"): 1, of("web-10"): 1}}
	for _, name := range []string{"web-0", "web-1", "web-2", "web-10"} {
		in.runs[of(name)] = true
	}
	for _, test := range []struct {
		more int
		name string
		want bool
	}{{2, "web-1", false}, {2, "web-10", false}, {1, "web-1", false}, {1, "web-10", true}, {0, "web-1", true}} {
		if got := in.leaves(of(test.name), test.more); got != test.want {
			t.Errorf("%d more, %s: %v, want %v", test.more, test.name, got, test.want)
		}
	}
}

// TestAStandbyForgetsWhoMadePods, too.
func TestAStandbyForgetsWhoMadePods(t *testing.T) {
	g, was := runsAlone(t, "apps/v1", "ReplicaSet")
	run := g.run()
	g.lost(was)
	is := madeBy("apps/v1", "ReplicaSet", "web-b", g.clock.Now())
	g.groups.note(is)
	g.want("another is made", is)
	g.groups.drop(is)
	g.groups.ended(run)
	if n, m := len(g.groups.makers), len(g.groups.succeeds); n+m != 0 {
		t.Errorf("%d controllers and %d pods are remembered", n, m)
	}
}
