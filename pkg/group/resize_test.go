package group

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// rankOf is a pod that has a rank of a Run.
func rankOf(index int) *corev1.Pod {
	return podOf(fmt.Sprint("p", index), 8, rqv1.LabelRun, "run", rqv1.LabelRunUID, "run", rqv1.LabelIndex,
		strconv.Itoa(index), rqv1.LabelRole, string(rqv1.RoleActive), rqv1.LabelSource, string(rqv1.SourcePods))
}

// A pod whose index is above those of its group is none of its ranks.
func TestAnIndexAboveTheRanks(t *testing.T) {
	for index, want := range []int{0, 1, -1, -1} {
		pod := podOf("p", 8, "batch.kubernetes.io/job-name", "job", labelCompletion, strconv.Itoa(index))
		if got := (&Shape{Ranks: 2}).Rank(pod); got != want {
			t.Errorf("of two ranks the pod of index %d has rank %d, want %d", index, got, want)
		}
	}
}

// TestWidthFor: a Run keeps what it started with, may grow by as many pods as there are more, and narrows as far as
// those that its group has no more are gone.
func TestWidthFor(t *testing.T) {
	between := func(least, most int32) *rqv1.RunMalleable {
		return &rqv1.RunMalleable{MinTotalGPUs: least, MaxTotalGPUs: most, StepGPUs: 8}
	}
	desires := func(m *rqv1.RunMalleable, gpus int32) *rqv1.RunMalleable {
		m.DesiredTotalGPUs = &gpus
		return m
	}
	for name, c := range map[string]struct {
		was   *rqv1.RunMalleable
		group int32
		ranks int
		one   bool // it lies in one domain
		least bool // the object says how many there are at least
		there []int
		want  *rqv1.RunMalleable
		has   *int32 // how many of its ranks are to have pods
	}{
		"as many": {ranks: 2, there: []int{0, 1}},
		"more":    {ranks: 4, there: []int{0, 1}, want: desires(between(16, 32), 32)},
		"more in groups": {group: 16, ranks: 5, there: []int{0, 1},
			want: desires(&rqv1.RunMalleable{MinTotalGPUs: 16, MaxTotalGPUs: 32, StepGPUs: 16}, 32)},
		"more in its domain": {one: true, ranks: 3, there: []int{0, 1}, want: desires(between(16, 24), 24)},
		"less than a group":  {group: 16, ranks: 3, there: []int{0, 1}},
		"more already": {was: desires(between(16, 32), 32), ranks: 4, there: []int{0, 1, 2},
			want: desires(between(16, 32), 32)},
		"fewer, that are gone": {ranks: 1, there: []int{0}, want: desires(between(8, 16), 8)},
		"fewer, that are not":  {ranks: 1, there: []int{0, 1}, want: desires(between(8, 16), 16), has: ptr.To[int32](1)},
		"fewer, another left": {was: desires(between(16, 32), 32), ranks: 2, there: []int{0, 3},
			want: desires(between(16, 32), 32), has: ptr.To[int32](2)},
		"fewer, the last left": {was: desires(between(16, 24), 24), ranks: 1, there: []int{2},
			want: desires(between(8, 24), 24), has: ptr.To[int32](1)},
		"fewer, of which one is lost": {was: desires(between(16, 32), 32), ranks: 3, there: []int{0, 1},
			want: desires(between(16, 32), 32), has: ptr.To[int32](3)},
		"less than a group fewer": {group: 16, ranks: 1, there: []int{1}, has: ptr.To[int32](1)},
		"none, and one left":      {ranks: 0, there: []int{0}, want: desires(between(8, 16), 8), has: ptr.To[int32](0)},
		"fewer than there were": {was: desires(between(16, 32), 32), ranks: 3, there: []int{0, 1, 2},
			want: desires(between(16, 32), 24)},
		"lost, of which there are some at least": {least: true, ranks: 1, there: []int{0}},
		"more, of which there are some at least": {least: true, ranks: 3, there: []int{0, 1},
			want: desires(between(16, 24), 24)},
		"at least, from fewer on": {was: between(8, 16), least: true, ranks: 2, there: []int{0, 1}, want: between(8, 16)},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &rqv1.RunSpec{Malleable: c.was, Resources: rqv1.RunResources{TotalGPUs: 16, GPUsPerPod: ptr.To[int32](8)}}
			if c.group > 0 {
				spec.Locality = &rqv1.RunLocality{GroupGPUs: &c.group}
			}
			if c.one {
				spec.Locality = &rqv1.RunLocality{AllowCrossGroupSpread: ptr.To(false)}
			}
			var pods []*corev1.Pod
			for _, index := range c.there {
				pods = append(pods, rankOf(index))
			}
			if diff := cmp.Diff(&Width{16, c.want, c.has}, WidthFor(spec, c.ranks, !c.least, pods)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestResized: a Run that runs is widened as its object asks, and one that waits again asks for what there is.
func TestResized(t *testing.T) {
	groups, err := Imagine(testRules, []map[string]any{objectOf(t, pytorch)})
	if err != nil || len(groups) != 1 {
		t.Fatal(err)
	}
	o := groups[0]
	o.Types = []string{"H100"}
	run := &rqv1.Run{Spec: *Derive(o).Spec, Status: rqv1.RunStatus{Phase: rqv1.RunRunning}}
	if to := Resized(run, o, nil); to != nil {
		t.Errorf("it is as wide as it is to be: %+v", to)
	}
	o.Pods = append(o.Pods, podOf("x", 8), podOf("y", 8), podOf("z", 8))
	workers := o.Object["spec"].(map[string]any)["pytorchReplicaSpecs"].(map[string]any)["Worker"].(map[string]any)
	workers["replicas"] = int64(5)
	want := &Width{TotalGPUs: 32, Malleable: &rqv1.RunMalleable{MinTotalGPUs: 32, MaxTotalGPUs: 48, StepGPUs: 8,
		DesiredTotalGPUs: ptr.To[int32](48)}}
	if diff := cmp.Diff(want, Resized(run, o, nil)); diff != "" {
		t.Errorf("it runs (-want +got):\n%s", diff)
	}
	o.Pods = o.Pods[:5]
	want.Malleable.MaxTotalGPUs, want.Malleable.DesiredTotalGPUs = 40, ptr.To[int32](40)
	if diff := cmp.Diff(want, Resized(run, o, nil)); diff != "" {
		t.Errorf("it runs, and one pod of two has come (-want +got):\n%s", diff)
	}
	run.Status.Phase = rqv1.RunPending
	if diff := cmp.Diff(&Width{TotalGPUs: 48}, Resized(run, o, nil)); diff != "" {
		t.Errorf("it waits again (-want +got):\n%s", diff)
	}
	run.Spec.Pods.Ranks = ptr.To[int32](2)
	run.Spec.Locality = &rqv1.RunLocality{AllowCrossGroupSpread: ptr.To(false)} // which keeps it from being read anew
	if diff := cmp.Diff(&Width{TotalGPUs: run.Spec.Resources.TotalGPUs}, Resized(run, o, nil)); diff != "" {
		t.Errorf("it waits again, and had been made smaller (-want +got):\n%s", diff)
	}
	run.Status.Phase = rqv1.RunCompleted
	if to := Resized(run, o, nil); to != nil {
		t.Errorf("it has ended: %+v", to)
	}
}
