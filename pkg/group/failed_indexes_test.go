package group

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

const indexedJob = `{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: ns}, status: {failedIndexes: %q},
spec: {parallelism: 5, completions: 5, completionMode: Indexed,
  template: {metadata: {annotations: {rq.davidlangworthy.io/owner: org}}, spec: {schedulerName: jobtree,
    containers: [{name: c, resources: {limits: {nvidia.com/gpu: 8}}}]}}}}`

// groupOf is the group of a Job of which some indexes have failed for good.
func groupOf(t *testing.T, failed string) *Observed {
	groups, err := Imagine(testRules, []map[string]any{objectOf(t, fmt.Sprintf(indexedJob, failed))})
	if err != nil || len(groups) != 1 {
		t.Fatal(err)
	}
	groups[0].Types = []string{"H100"}
	return groups[0]
}

// Indexes of a Job that have failed for good are none of its group: no pod of theirs comes. One that runs goes on as
// wide as it is, and keeps nothing for them; one that waits asks for the others alone, without what has completed.
func TestIndexesThatHaveFailedForGood(t *testing.T) {
	for list, left := range map[string]int32{"": 5, "1": 4, "0,2": 3, "1-3": 2, "0,2-4": 1, "x": 5, "3-1": 5} {
		o, spec := groupOf(t, list), *Derive(groupOf(t, "")).Spec
		if derived := Derive(o); derived.Spec == nil || derived.Spec.Resources.TotalGPUs != 8*left {
			t.Errorf("%q: it begins as %+v", list, derived)
		}
		run := &rqv1.Run{Spec: spec, Status: rqv1.RunStatus{Phase: rqv1.RunRunning}}
		o.Pods = groupOf(t, "").Pods[:left]
		var runs, waits *Width
		if left < 5 {
			runs = &Width{TotalGPUs: 40, Ranks: ptr.To(left), Malleable: &rqv1.RunMalleable{MinTotalGPUs: 8 * left,
				MaxTotalGPUs: 40, StepGPUs: 8, DesiredTotalGPUs: ptr.To[int32](40)}}
			waits = &Width{TotalGPUs: 8 * left}
		}
		if diff := cmp.Diff(runs, Resized(run, o, append(o.Pods[:0:0], rankOf(4)))); diff != "" {
			t.Errorf("%q: while it runs (-want +got):\n%s", list, diff)
		}
		run.Status.Phase = rqv1.RunPending
		if diff := cmp.Diff(waits, Resized(run, o, nil)); diff != "" {
			t.Errorf("%q: while it waits (-want +got):\n%s", list, diff)
		}
	}
}

// Where some have completed as well, it waits for those alone that are left, and not for fewer and fewer.
func TestIndexesThatHaveFailedBesideOthersThatHaveCompleted(t *testing.T) {
	o, run := groupOf(t, "1"), &rqv1.Run{Spec: *Derive(groupOf(t, "")).Spec}
	run.Status.Phase = rqv1.RunPending
	o.Object["status"].(map[string]any)["succeeded"] = int64(1)
	if diff := cmp.Diff(&Width{TotalGPUs: 24}, Resized(run, o, nil)); diff != "" {
		t.Errorf("it asks for (-want +got):\n%s", diff)
	}
	run.Spec.Resources.TotalGPUs = 24
	if again := Resized(run, o, nil); again != nil {
		t.Errorf("it is resized again: %+v", again)
	}
}

// A Job that has pods in turns keeps nothing for ranks whose pods have failed for good once fewer are left than run at
// a time, and keeps as many as before until then: others come into them.
func TestIndexesOfAJobInTurnsThatHaveFailedForGood(t *testing.T) {
	const runs, fails, done = corev1.PodRunning, corev1.PodFailed, corev1.PodSucceeded
	for name, c := range map[string]struct {
		failed    string
		succeeded int64
		ranks     []corev1.PodPhase
		want      int32 // 0 for as many as before
	}{
		"others are to come":             {"1", 2, []corev1.PodPhase{runs, fails, runs, runs, runs}, 0},
		"none comes for the last":        {"8", 5, []corev1.PodPhase{runs, done, fails, runs, runs}, 4},
		"two of the last are not to run": {"7,8", 5, []corev1.PodPhase{runs, done, fails, fails, runs}, 3},
		"others are done":                {"1,2", 4, []corev1.PodPhase{runs, runs, done, runs, done}, 0},
	} {
		o, run := groupOf(t, c.failed), &rqv1.Run{Spec: *Derive(groupOf(t, "")).Spec}
		run.Status.Phase = rqv1.RunRunning
		o.Object["spec"].(map[string]any)["completions"] = int64(9)
		o.Object["status"].(map[string]any)["succeeded"] = c.succeeded
		o.Pods = nil
		for i, phase := range c.ranks {
			pod := rankOf(i)
			pod.Status.Phase = phase
			o.Pods = append(o.Pods, pod)
		}
		got := int32(0)
		if w := Resized(run, o, o.Pods); w != nil {
			got = *w.Ranks
		}
		if got != c.want {
			t.Errorf("%s: it has %d ranks, want %d", name, got, c.want)
		}
	}
}
