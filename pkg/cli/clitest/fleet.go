package clitest

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Fleets draws what an API server holds an hour after noon: nodes in every state, and Runs, GPU leases, pods and
// Reservations on them, whether they agree with each other or not. Some instants are a little ahead: clocks differ.
func Fleets() *rapid.Generator[[]client.Object] {
	return rapid.Custom(func(t *rapid.T) []client.Object {
		f := &fleet{T: t}
		for i := range rapid.IntRange(1, 6).Draw(t, "nodes") {
			f.node(fmt.Sprint("n", 7+i))
		}
		for i := range rapid.SampledFrom([]int{0, 1, 2, 5, 30}).Draw(t, "runs") {
			f.run(i)
		}
		for i := range rapid.IntRange(0, 8).Draw(t, "pods") {
			f.pod(i)
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "reservations") {
			f.reservation(i)
		}
		return f.objects
	})
}

// fleet is one that is being drawn.
type fleet struct {
	*rapid.T
	objects []client.Object
	nodes   []string
	runs    []*rqv1.Run
	uids    int // of pods that have a GPU lease
}

// one draws one of several values.
func one[T any](f *fleet, what string, of ...T) T { return rapid.SampledFrom(of).Draw(f.T, what) }

func (f *fleet) number(what string, from, to int) int {
	return rapid.IntRange(from, to).Draw(f.T, what)
}

// about is an instant near the present: up to two hours before it, or a minute after it.
func (f *fleet) about(what string) time.Time {
	return Noon.Add(time.Hour + time.Duration(f.number(what, -7200, 60))*time.Second)
}

func gpus(n int) corev1.ResourceList {
	return corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(n), resource.DecimalSI)}
}

func (f *fleet) node(name string) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": "west",
		"cluster": one(f, "cluster", "one", "two"), "fabric.domain": one(f, "domain", "A", "A", "B-12"),
		"gpu.flavor": one(f, "type", "H100", "H100", "TPU")}, Annotations: map[string]string{}}}
	delete(n.Labels, one(f, "lacks", "", "", "", "cluster", "fabric.domain", "gpu.flavor"))
	told := one(f, "record", "broken", `{"at":"2030-01-02T12:30:00Z","reason":"OutOfService","message":"taint"}`,
		"two\nlines", "\033[2Jgone", "")
	later := Noon.Add(3 * time.Hour).Format(time.RFC3339)
	key := one(f, "annotation", "", "", rqv1.AnnotationLost, rqv1.AnnotationHeldBack, rqv1.AnnotationSuspect,
		rqv1.AnnotationMaintenanceStart)
	switch key {
	case "":
	case rqv1.AnnotationMaintenanceStart:
		n.Annotations[key] = later
	default:
		n.Annotations[key] = told
	}
	n.Spec.Unschedulable = one(f, "cordoned", false, false, false, true)
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady,
		Status: one(f, "ready", corev1.ConditionTrue, corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown)}}
	capacity := f.number("capacity", 0, 8)
	n.Status.Capacity, n.Status.Allocatable = gpus(capacity), gpus(f.number("allocatable", 0, capacity))
	f.objects, f.nodes = append(f.objects, n), append(f.nodes, name)
}

// somewhere is a node, or one that is gone.
func (f *fleet) somewhere() string { return one(f, "on", append(slices.Clone(f.nodes), "gone")...) }

// run draws a Run and its GPU leases, which may be there without it.
func (f *fleet) run(i int) {
	run := RunOf(fmt.Sprintf("run-%d", i), 8, 0, Runs(8))
	run.Namespace = one(f, "namespace", "rai", "mm")
	if one(f, "source", false, false, true) {
		run = Stands(run, "", "Group", fmt.Sprintf("g-%d", i))
	}
	f.runs = append(f.runs, &run)
	for range f.number("leases", 0, 3) {
		f.uids++
		l := As(LeaseOf(&run, fmt.Sprint("lease-", f.uids), 0, f.somewhere()),
			one(f, "role", rqv1.RoleActive, rqv1.RoleActive, rqv1.RoleSpare, rqv1.RoleBorrowed), f.uids)
		l.Labels[rqv1.LabelPodUID] = fmt.Sprint("uid-", f.uids)
		l.Spec.Slice.Nodes[0].GPUs = int32(f.number("gpus", 1, 8))
		l.Spec.Start = metav1.NewMicroTime(f.about("start"))
		if one(f, "closed", false, false, false, true) {
			l = Closed(l, f.about("end").Sub(l.Spec.Start.Time), rqv1.ClosedCompleted)
		}
		f.objects = append(f.objects, &l)
	}
	if one(f, "gone", false, false, true) && run.Spec.Source != rqv1.SourcePods {
		return
	}
	f.objects = append(f.objects, &run)
}

// pod draws a pod: one of a GPU lease's, one of a Run's without a lease, or somebody else's.
func (f *fleet) pod(i int) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "rai", Name: fmt.Sprint("pod-", i),
		UID: types.UID(fmt.Sprint("other-", i))}}
	if f.uids > 0 && one(f, "leased", true, false) {
		p.UID = types.UID(fmt.Sprint("uid-", f.number("uid", 1, f.uids)))
	}
	if len(f.runs) > 0 && one(f, "ours", true, false) {
		run := one(f, "run", f.runs...)
		p.Namespace, p.Labels = run.Namespace, map[string]string{rqv1.LabelRun: run.Name}
	}
	p.Spec.NodeName = one(f, "bound", f.somewhere(), "")
	asks := func(what string) corev1.Container {
		return corev1.Container{Name: what, Resources: corev1.ResourceRequirements{Requests: gpus(f.number(what, 0, 2))}}
	}
	p.Spec.Containers = []corev1.Container{asks("first"), asks("second")}
	before := asks("before")
	if one(f, "sidecar", true, false) {
		before.RestartPolicy = Ptr(corev1.ContainerRestartPolicyAlways)
	}
	p.Spec.InitContainers = []corev1.Container{before}
	p.Status.Phase = one(f, "phase", corev1.PodRunning, corev1.PodPending, corev1.PodSucceeded, corev1.PodFailed)
	f.objects = append(f.objects, p)
}

func (f *fleet) reservation(i int) {
	run := RunOf(fmt.Sprint("next-", i), 8, 0, Waits("InsufficientGPUs", "waits"))
	r := ReservationOf(&run, 8)
	r.Spec.IntendedSlice.Nodes = slices.Compact(slices.Sorted(slices.Values([]string{f.somewhere(), f.somewhere()})))
	if one(f, "nowhere", false, false, false, true) {
		r.Spec.IntendedSlice = nil
	}
	r.Spec.EarliestStart = metav1.NewTime(f.about("date").Add(time.Hour))
	r.Status.State = one(f, "state", rqv1.ReservationPending, rqv1.ReservationActivating, rqv1.ReservationReleased,
		rqv1.ReservationCanceled)
	f.objects = append(f.objects, &r)
}
