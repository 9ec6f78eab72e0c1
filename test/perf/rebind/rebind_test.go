package rebind

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

func TestDistribute(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100-i) * time.Second
	}
	for name, c := range map[string]struct {
		samples []time.Duration
		want    Distribution
		met     bool
	}{
		"none": {nil, Distribution{Target: 99}, false},
		"one": {hundred[99:], Distribution{Samples: 1, Min: 1, P50: 1, P90: 1, P99: 1, Max: 1, Target: 99},
			true},
		"hundred": {hundred, Distribution{Samples: 100, Min: 1, P50: 50, P90: 90, P99: 99, Max: 100, Target: 99},
			false},
		"all but the last": {hundred[2:], Distribution{Samples: 98, Min: 1, P50: 49, P90: 89, P99: 98, Max: 98, Target: 99},
			true},
	} {
		got := Distribute(c.samples, 99*time.Second)
		if diff := cmp.Diff(c.want, got); diff != "" || got.Met() != c.met {
			t.Errorf("%s: met %v\n%s", name, got.Met(), diff)
		}
	}
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(milliseconds int) time.Time { return noon.Add(time.Duration(milliseconds) * time.Millisecond) }

// seen has a view see a pod of a Run.
func (v *view) seen(name, uid, node string, role rqv1.LeaseRole, milliseconds int) {
	v.setPod(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid),
			Labels: map[string]string{rqv1.LabelRun: "r", rqv1.LabelRole: string(role)}},
		Spec: corev1.PodSpec{NodeName: node},
	}, at(milliseconds))
}

// gone has a view see that a pod of a Run is gone.
func (v *view) gone(name, uid string) {
	v.removePod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid)}})
}

// fleetSeen has a view see a node: a healthy one, or one whose loss is recorded.
func (v *view) fleetSeen(name string, lost bool, milliseconds int) {
	n := fleetNode(0)
	n.Name = name
	if n.Spec.Unschedulable = lost; lost {
		n.Annotations[rqv1.AnnotationLost] = "2026-03-01T12:00:00Z OutOfService taint"
	}
	v.setNode(&n, at(milliseconds))
}

// TestSample follows a loss of one rank, from a world at rest until it is so again.
func TestSample(t *testing.T) {
	v := newView()
	for _, name := range []string{"a", "b", "c"} {
		v.fleetSeen(name, false, 0)
	}
	v.seen("r-0", "1", "a", rqv1.RoleActive, 0)
	v.seen("r-1", "2", "b", rqv1.RoleActive, 0)
	v.seen("r-s0", "3", "c", rqv1.RoleSpare, 0)
	v.setPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "foreign"}}, noon)
	if err := v.atRest(3); err != nil {
		t.Fatal(err)
	}
	lost := &loss{leases: map[string]coordinationv1.LeaseSpec{"a": {}}, ranks: map[string]types.UID{"r-0": "1"},
		began: at(100), written: at(110)}

	steps := []struct {
		what               string
		do                 func()
		recorded, replaced bool
	}{
		{"nothing", func() {}, false, false},
		{"the record", func() { v.fleetSeen("a", true, 130) }, true, false},
		{"the record, again", func() { v.fleetSeen("a", true, 500) }, true, false},
		{"the end of the lost pod", func() { v.gone("r-0", "1") },
			true, false},
		{"its replacement", func() { v.seen("r-0", "4", "", rqv1.RoleActive, 200) }, true, false},
		{"an old event of the lost pod", func() {
			v.gone("r-0", "1")
		}, true, false},
		{"the bind", func() { v.seen("r-0", "4", "c", rqv1.RoleActive, 260) }, true, true},
		{"a later event", func() { v.seen("r-0", "4", "c", rqv1.RoleActive, 300) }, true, true},
	}
	for _, step := range steps {
		step.do()
		recorded, replaced := v.recorded(lost), v.replaced(lost)
		if (recorded == nil) != step.recorded || (replaced == nil) != step.replaced ||
			v.atRest(3) == nil != (step.what == "nothing") {
			t.Errorf("after %s: %v; %v; at rest: %v", step.what, recorded, replaced, v.atRest(3))
		}
	}
	s := &stages{}
	s.add(v, lost)
	ms := func(n int) []time.Duration { return []time.Duration{time.Duration(n) * time.Millisecond} }
	if diff := cmp.Diff(&stages{ms(10), ms(30), ms(100), ms(160)}, s, cmp.AllowUnexported(stages{}),
		cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	v.fleetSeen("a", false, 600)
	v.seen("r-s0", "5", "a", rqv1.RoleSpare, 700)
	if err := v.atRest(3); err != nil {
		t.Error(err)
	}
}
