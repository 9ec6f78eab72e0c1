package picture_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/picture"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// defaults are the scheduler's arguments as they are when nothing is set.
func defaults(t rapid.TB) *config.Args {
	t.Helper()
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	return args
}

func gpus(n int) corev1.ResourceList {
	return corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(int64(n), resource.DecimalSI)}
}

// node is a node that is in service, of which so many GPUs can be allocated.
func node(name string, capacity, allocatable int) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": "r", "cluster": "c",
			"fabric.domain": "d", "gpu.flavor": "H100"}},
		Status: corev1.NodeStatus{Capacity: gpus(capacity), Allocatable: gpus(allocatable),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

// lease is an open GPU lease of a Run in namespace ns.
func lease(run string, role rqv1.LeaseRole, on string, gpus int32, start time.Time) *rqv1.Lease {
	return &rqv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint(run, role, on, start.Unix()),
			Labels: map[string]string{rqv1.LabelPodUID: fmt.Sprint(run, role, on)}},
		Spec: rqv1.LeaseSpec{Owner: "team", RunRef: rqv1.LeaseRunRef{Namespace: "ns", Name: run},
			Start: metav1.NewMicroTime(start),
			Slice: rqv1.LeaseSlice{Role: role, Nodes: []rqv1.NodeGPUs{{Name: on, GPUs: gpus}}}},
	}
}

func closed(l *rqv1.Lease, at time.Time) *rqv1.Lease {
	ended := metav1.NewMicroTime(at)
	l.Status = rqv1.LeaseStatus{Closed: true, Ended: &ended, ClosureReason: rqv1.ClosedCompleted}
	return l
}

// TestFleet draws a node on which every use of a GPU occurs.
func TestFleet(t *testing.T) {
	foreign := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "p", UID: "p"},
		Spec: corev1.PodSpec{NodeName: "a", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: gpus(1)}}}}}
	leaving := foreign.DeepCopy()
	leaving.Namespace, leaving.UID, leaving.Labels = "ns", "q", map[string]string{rqv1.LabelRun: "old"}
	counted := foreign.DeepCopy()
	counted.UID = types.UID("trainActivea")
	over := closed(lease("before", rqv1.RoleActive, "a", 4, noon.Add(-2*time.Hour)), noon.Add(-time.Hour))
	o := &picture.Objects{
		Nodes: []*corev1.Node{node("a", 16, 15), {ObjectMeta: metav1.ObjectMeta{Name: "no-gpus"}}},
		Leases: []*rqv1.Lease{lease("train", rqv1.RoleActive, "a", 4, noon), lease("train", rqv1.RoleSpare, "a", 4, noon),
			lease("shards", rqv1.RoleBorrowed, "a", 6, noon), over},
		Pods: []*corev1.Pod{foreign, leaving, counted},
		Reservations: []*rqv1.Reservation{{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "next-r0"},
			Spec: rqv1.ReservationSpec{IntendedSlice: &rqv1.IntendedSlice{Nodes: []string{"a"}}}}},
	}
	want := []picture.Node{{Name: "a", Domain: []string{"r", "c", "d"}, GPUType: "H100", State: picture.OK,
		For: []string{"ns/next-r0"},
		Spans: []picture.Span{
			{Use: picture.Active, Run: "ns/train", GPUs: 4},
			{Use: picture.Spare, Run: "ns/train", Tenant: "ns/shards", GPUs: 1},
			{Use: picture.Spare, Run: "ns/train", GPUs: 3},
			{Use: picture.Shard, Run: "ns/shards", GPUs: 5},
			{Use: picture.Leaving, Run: "ns/old", GPUs: 1},
			{Use: picture.Foreign, GPUs: 1},
			{Use: picture.Broken, GPUs: 1},
		}}}
	if diff := cmp.Diff(want, picture.FleetAt(o, defaults(t), noon, true)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want[0].For, want[0].Spans = nil, []picture.Span{{Use: picture.Active, Run: "ns/before", GPUs: 4},
		{Use: picture.Free, GPUs: 11}, {Use: picture.Broken, GPUs: 1}}
	if diff := cmp.Diff(want, picture.FleetAt(o, defaults(t), noon.Add(-90*time.Minute), false)); diff != "" {
		t.Errorf("an hour and a half ago (-want +got):\n%s", diff)
	}
}

// TestTheFleetOfAClockThatIsBehind looks with a clock that is a minute behind that of whoever opens and closes GPU
// leases: what has begun is held, and what has ended is not.
func TestTheFleetOfAClockThatIsBehind(t *testing.T) {
	o := &picture.Objects{Nodes: []*corev1.Node{node("a", 8, 8)}, Leases: []*rqv1.Lease{
		closed(lease("before", rqv1.RoleActive, "a", 8, noon.Add(-time.Hour)), noon),
		lease("after", rqv1.RoleActive, "a", 8, noon)}}
	want := []picture.Span{{Use: picture.Active, Run: "ns/after", GPUs: 8}}
	if diff := cmp.Diff(want, picture.FleetAt(o, defaults(t), noon.Add(-time.Minute), true)[0].Spans); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEveryGPUIsDrawnOnce draws random nodes: what is drawn is as many GPUs as the node has, or as are held where that
// is more, and of each Run as many as its GPU leases hold.
func TestEveryGPUIsDrawnOnce(t *testing.T) {
	args := defaults(t)
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.IntRange(1, 16).Draw(t, "capacity")
		allocatable := rapid.IntRange(0, capacity).Draw(t, "allocatable")
		o := &picture.Objects{Nodes: []*corev1.Node{node("a", capacity, allocatable)}}
		firm, shards := 0, 0
		held := map[string]int{}
		for i := range rapid.IntRange(0, 6).Draw(t, "leases") {
			run := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "run")
			role := rapid.SampledFrom([]rqv1.LeaseRole{rqv1.RoleActive, rqv1.RoleSpare, rqv1.RoleBorrowed}).Draw(t, "role")
			n := rapid.Int32Range(1, 8).Draw(t, "gpus")
			o.Leases = append(o.Leases, lease(run, role, "a", n, noon.Add(time.Duration(i)*time.Second)))
			held["ns/"+run] += int(n)
			if role == rqv1.RoleBorrowed {
				shards += int(n)
			} else {
				firm += int(n)
			}
		}
		drawn := picture.FleetAt(o, args, noon.Add(time.Hour), true)[0]
		got := map[string]int{}
		for _, s := range drawn.Spans {
			if s.GPUs < 1 {
				t.Fatalf("an empty span: %+v", drawn.Spans)
			}
			if s.Run != "" {
				got[s.Run] += s.GPUs
			}
			if s.Tenant != "" {
				got[s.Tenant] += s.GPUs
			}
		}
		if diff := cmp.Diff(held, got); diff != "" {
			t.Errorf("GPUs by Run (-held +drawn):\n%s\n%+v", diff, drawn.Spans)
		}
		total := drawn.GPUs()
		if total < max(capacity, firm) || total > max(capacity, firm+shards) {
			t.Errorf("%d GPUs are drawn of %d, of which %d are held and %d used by shards: %+v", total, capacity, firm, shards,
				drawn.Spans)
		}
		if free := drawn.GPUs(picture.Free); free > 0 && free != allocatable-firm-shards {
			t.Errorf("%d GPUs are drawn as free: %+v", free, drawn.Spans)
		}
	})
}
