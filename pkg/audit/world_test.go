package audit_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/audit"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

const gpu = "nvidia.com/gpu"

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func rules(t testing.TB) audit.Rules {
	t.Helper()
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	return audit.RulesOf(args)
}

func node(name, domain string, gpus int) *corev1.Node {
	has := corev1.ResourceList{gpu: *resource.NewQuantity(int64(gpus), resource.DecimalSI)}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": "w", "cluster": "c",
			"fabric.domain": domain, "gpu.flavor": "H100"}},
		Status: corev1.NodeStatus{Allocatable: has, Capacity: has.DeepCopy()},
	}
}

// pod is a rank of a Run, bound to a node.
func pod(run *rqv1.Run, part rank.Part, on string, gpus int) *corev1.Pod {
	name := part.PodName(run.Name)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: run.Namespace, Name: name,
			UID:             types.UID(fmt.Sprintf("%s-pod-of-%s", name, run.UID)),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(run, rqv1.GroupVersion.WithKind("Run"))},
			Labels: map[string]string{rqv1.LabelRun: run.Name, rqv1.LabelGroupIndex: "0",
				rqv1.LabelIndex: strconv.Itoa(part.Index),
				rqv1.LabelRole:  string(rank.RoleOf(&run.Spec, part))}},
		Spec: corev1.PodSpec{SchedulerName: rqv1.SchedulerName, NodeName: on, Containers: []corev1.Container{{Name: "c"}}},
	}
	if !part.Spare {
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{
			gpu: *resource.NewQuantity(int64(gpus), resource.DecimalSI)}
	}
	return p
}

// lease is the open Lease of a pod, from an instant before noon.
func lease(run *rqv1.Run, of *corev1.Pod, gpus int, ago time.Duration) *rqv1.Lease {
	return &rqv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: rank.LeaseName(of.Name, of.UID), UID: "lease-" + of.UID,
			Labels: map[string]string{rqv1.LabelPodUID: string(of.UID), rqv1.LabelIndex: of.Labels[rqv1.LabelIndex]}},
		Spec: rqv1.LeaseSpec{Owner: run.Spec.Owner, RunRef: rqv1.LeaseRunRef{Name: run.Name, Namespace: run.Namespace,
			UID: run.UID},
			Slice: rqv1.LeaseSlice{Role: rqv1.LeaseRole(of.Labels[rqv1.LabelRole]),
				Nodes: []rqv1.NodeGPUs{{Name: of.Spec.NodeName, GPUs: int32(gpus)}}},
			Payer:          rqv1.LeasePayer{Budget: "team", Owner: "org:team", Relation: rqv1.RelationOwn, Rate: "1"},
			PaidByEnvelope: "all",
			Reason:         rqv1.ReasonStart, Start: metav1.NewMicroTime(noon.Add(-ago))},
	}
}

// died is the status of a pod whose program failed at an instant.
func died(at time.Time) corev1.PodStatus {
	ended := corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.NewTime(at)}}
	return corev1.PodStatus{Phase: corev1.PodFailed,
		ContainerStatuses: []corev1.ContainerStatus{{Name: "c", State: ended}}}
}

// closed ends a Lease before noon.
func closed(l *rqv1.Lease, ago time.Duration, reason rqv1.ClosureReason) *rqv1.Lease {
	ended := metav1.NewMicroTime(noon.Add(-ago))
	l.Status = rqv1.LeaseStatus{Closed: true, Ended: &ended, ClosureReason: reason}
	return l
}

func run(name string, gpus int32, phase rqv1.RunPhase) *rqv1.Run {
	return &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("run-" + name)},
		Spec:   rqv1.RunSpec{Owner: "org:team", Resources: rqv1.RunResources{GPUType: "H100", TotalGPUs: gpus}},
		Status: rqv1.RunStatus{Phase: phase}}
}

// sound is a world in which all is as it should be, and much is going on: a Run in a group with a spare, a shard under
// that, a Run that has ended, and one that waits. It is read as a whole, at noon.
func sound() *audit.World {
	w := &audit.World{At: noon, Whole: true}
	for i, domain := range []string{"a", "a", "a", "b"} {
		w.Nodes = append(w.Nodes, node(fmt.Sprintf("n%d", i), domain, 8))
	}
	train, shards, done, waits := run("train", 16, rqv1.RunRunning), run("shards", 4, rqv1.RunRunning),
		run("done", 8, rqv1.RunCompleted), run("waits", 64, rqv1.RunPending)
	group, spares := int32(16), int32(8)
	train.Spec.Locality, train.Spec.SparesPerGroup = &rqv1.RunLocality{GroupGPUs: &group}, &spares
	shards.Spec.Opportunistic = true
	waits.Status.Conditions = []metav1.Condition{{Type: rqv1.ConditionStarted, Status: metav1.ConditionFalse,
		Reason: "InsufficientGPUs"}}
	w.Runs = []*rqv1.Run{train, shards, done, waits}
	add := func(r *rqv1.Run, part rank.Part, on string, gpus int) {
		p := pod(r, part, on, gpus)
		w.Pods, w.Leases = append(w.Pods, p), append(w.Leases, lease(r, p, gpus, time.Hour))
	}
	add(train, rank.Part{Index: 0}, "n0", 8)
	add(train, rank.Part{Index: 1}, "n1", 8)
	add(train, rank.Part{Index: 0, Spare: true}, "n2", 8)
	add(shards, rank.Part{Index: 0}, "n2", 4)
	w.Leases[2].Spec.Payer.Rate, w.Leases[3].Spec.Payer.Rate = "0.5", "0"
	ended := pod(done, rank.Part{}, "n3", 8)
	ended.Status.Phase = corev1.PodSucceeded
	w.Pods = append(w.Pods, ended, pod(waits, rank.Part{}, "", 64))
	w.Leases = append(w.Leases, closed(lease(done, ended, 8, 3*time.Hour), 2*time.Hour, rqv1.ClosedCompleted))
	w.Reservations = []*rqv1.Reservation{
		{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "waits-r0",
			Labels: map[string]string{rqv1.LabelRunUID: "run-waits"}},
			Spec:   rqv1.ReservationSpec{RunRef: rqv1.NamespacedName{Namespace: "ns", Name: "waits"}},
			Status: rqv1.ReservationStatus{State: rqv1.ReservationPending}}}
	w.Records = []budget.Record{{Budget: "team", Through: noon.Add(-700 * time.Hour).Unix(),
		Envelopes: map[string][]budget.Bucket{"all": {{Spent: [3][3]budget.Spend{{100 * budget.GPUHour}}}}},
		Windows:   map[string]int64{"all": 0}}}
	most := int32(32)
	w.Budgets = []*rqv1.Budget{
		{ObjectMeta: metav1.ObjectMeta{Name: "team", Generation: 1,
			CreationTimestamp: metav1.NewTime(noon.Add(-1000 * time.Hour))},
			Spec: rqv1.BudgetSpec{Owner: "org:team", Envelopes: []rqv1.Envelope{{Name: "all", Flavor: "H100", Concurrency: 32}},
				AggregateCaps: []rqv1.AggregateCap{{Name: "cap", Flavor: "H100", Envelopes: []string{"all"},
					MaxConcurrency: &most}}}}}
	w.Budgets[0].Status = statusOf(w)
	return w
}

// statusOf is what the scheduler writes of the one Budget of a world, half a minute before noon.
func statusOf(w *audit.World) rqv1.BudgetStatus {
	at := noon.Add(-30 * time.Second)
	a := budget.NewAccounts(budget.Rates{Spare: 500})
	a.SetBudget(w.Budgets[0])
	a.SetRecord(w.Records[0])
	for _, l := range w.Leases {
		if c := book.ChargeIn(l); l.Status.Closed {
			a.Past(l.Name, c, l.Status.Ended.Time)
		} else {
			a.Open(l.Name, c)
		}
	}
	return a.Status(w.Budgets[0], at)
}

// examine has a world looked at twice, unchanged, and returns what stands.
func examine(t testing.TB, w *audit.World) []audit.Finding {
	t.Helper()
	r := rules(t)
	return audit.Standing(r.Look(w), r.Look(w))
}

// TestSound finds nothing wrong where nothing is.
func TestSound(t *testing.T) {
	w := sound()
	if found := examine(t, w); len(found) > 0 {
		t.Errorf("found %+v", found)
	}
	w.Whole, w.Leases = false, w.Leases[:4] // as the scheduler sees it
	if found := examine(t, w); len(found) > 0 {
		t.Errorf("of open GPU leases alone, found %+v", found)
	}
	settled := rules(t)
	settled.Settled = true
	look := settled.Look(sound())
	if found := audit.Standing(look, look); len(found) > 0 {
		t.Errorf("in a settled world, found %+v", found)
	}
	if diff := cmp.Diff(0, audit.Count(nil)["I8"]); diff != "" || len(audit.Count(nil)) != len(audit.Invariants) {
		t.Errorf("counts %v", audit.Count(nil))
	}
}
