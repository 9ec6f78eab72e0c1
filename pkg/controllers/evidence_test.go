package controllers

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	core "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/reconcile"
)

// ours is an API server with objects of our kinds.
func ours(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := rqv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&rqv1.Run{}, &rqv1.Lease{}, &rqv1.Reservation{}, &rqv1.Budget{}).Build()
}

// named is an object of the namespace ns.
func named(name string, uid types.UID) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid}
}

// TestAsk asks of nodes, Leases and Runs whether they are gone, and of pods whether they are not bound.
func TestAsk(t *testing.T) {
	recorded := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "lost", Annotations: map[string]string{rqv1.AnnotationLost: "somebody says so"}},
		Spec:       corev1.NodeSpec{Unschedulable: true}}
	out := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "out"}, Spec: corev1.NodeSpec{
		Taints: []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}}}
	closedLease := &rqv1.Lease{ObjectMeta: named("closed", "l"), Status: rqv1.LeaseStatus{Closed: true}}
	boundPod, unbound := rankOf(0, corev1.PodRunning), rankOf(1, corev1.PodPending)
	unbound.Spec.NodeName = ""
	e := evidence{
		client: ours(t, &rqv1.Run{ObjectMeta: named("train", "run")}, &rqv1.Lease{ObjectMeta: named("open", "o")},
			closedLease),
		kube: kubefake.NewClientset(recorded, out, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "stands"}}, boundPod,
			unbound),
	}
	lease := func(name string) reconcile.Question {
		return reconcile.Question{If: lifecycle.Unpaid, Lease: types.NamespacedName{Namespace: "ns", Name: name}}
	}
	run := func(name string, uid types.UID) reconcile.Question {
		return reconcile.Question{If: lifecycle.RunGone, Run: types.NamespacedName{Namespace: "ns", Name: name}, UID: uid}
	}
	node := func(name string) reconcile.Question { return reconcile.Question{If: lifecycle.NodeLost, Node: name} }
	stands := func(name string) reconcile.Question {
		return reconcile.Question{If: lifecycle.NodeStands, Node: name}
	}
	pod := func(name string, run types.UID) reconcile.Question {
		return reconcile.Question{If: lifecycle.Unbound, Pod: types.NamespacedName{Namespace: "ns", Name: name}, UID: run}
	}
	answers, err := e.Ask(t.Context(), []reconcile.Question{
		node("lost"), node("out"), node("stands"), node("none"),
		stands("lost"), stands("out"), stands("stands"), stands("none"), lease("open"), lease("closed"), lease("none"),
		run("train", "run"), run("train", "earlier"), run("none", "run"),
		pod("train-0", "run"), pod("train-0", "earlier"), pod("train-1", "run"), pod("train-2", "run"),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []bool{true, false, false, true, false, false, true, false, false, true, true, false, true, true, false,
		true, true, true}
	if diff := cmp.Diff(want, answers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if answers, err := e.Ask(t.Context(), []reconcile.Question{{If: "Rumor"}, node("lost")}); err == nil || answers[0] ||
		!answers[1] {
		t.Errorf("%v, %v", answers, err)
	}
}

// TestAlive asks for pods of which the ends of some were told.
func TestAlive(t *testing.T) {
	pod := func(rank int, phase corev1.PodPhase) *corev1.Pod { return rankOf(rank, phase) }
	for name, c := range map[string]struct {
		told []types.UID
		away bool
		want map[types.UID]bool
		err  bool
	}{
		"nothing was told":           {want: map[types.UID]bool{"pod0": true}},
		"the end of one was told":    {told: []types.UID{"pod0"}, want: map[types.UID]bool{"pod0": true}},
		"the ends of both":           {told: []types.UID{"pod0", "pod1"}},
		"both, by one that is away":  {told: []types.UID{"pod0", "pod1"}, away: true},
		"an API server that is away": {away: true, err: true},
	} {
		kube := kubefake.NewClientset(pod(0, corev1.PodRunning), pod(1, corev1.PodFailed))
		kube.PrependReactor("list", "pods", func(core.Action) (bool, runtime.Object, error) {
			return c.away, nil, errors.New("away")
		})
		e := evidence{kube: kube, gone: &endedPods{}}
		for _, uid := range c.told {
			e.gone.add(train, uid)
		}
		got, err := e.Alive(t.Context(), train, []types.UID{"pod0", "pod1"})
		if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != c.err {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// TestRankLeases reads the Leases of some ranks among those of other ranks, of spares and of other Runs.
func TestRankLeases(t *testing.T) {
	var all []client.Object
	for name, l := range map[string][3]string{
		"a": {"train", "Active", "0"}, "b": {"train", "Active", "1"}, "c": {"train", "Active", "2"},
		"d": {"train", "Spare", "0"},
		"e": {"other", "Active", "0"},
	} {
		lease := &rqv1.Lease{ObjectMeta: named(name, types.UID(name))}
		lease.Labels = map[string]string{rqv1.LabelRun: l[0], rqv1.LabelRole: l[1], rqv1.LabelIndex: l[2], "name": name}
		lease.Status.Closed = name == "a"
		all = append(all, lease)
	}
	got, err := evidence{client: ours(t, all...)}.RankLeases(t.Context(), runAt("1"), []string{"0", "2"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, labels := range got {
		names = append(names, labels["name"])
	}
	if diff := cmp.Diff([]string{"a", "c"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
