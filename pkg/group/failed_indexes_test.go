package group

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

const indexedJob = `{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: ns}, status: {failedIndexes: %q},
spec: {parallelism: 5, completions: 5, completionMode: Indexed,
  template: {metadata: {annotations: {rq.davidlangworthy.io/owner: org}}, spec: {schedulerName: jobtree,
    containers: [{name: c, resources: {limits: {nvidia.com/gpu: 8}}}]}}}}`

// Indexes of a Job that have failed for good are none of a group that runs any more: no pod of theirs comes.
func TestIndexesThatHaveFailedForGood(t *testing.T) {
	for list, left := range map[string]int32{"": 5, "1": 4, "0,2": 3, "1-3": 2, "0,2-4": 1, "x": 5, "3-1": 5} {
		groups, err := Imagine(testRules, []map[string]any{objectOf(t, fmt.Sprintf(indexedJob, list))})
		if err != nil || len(groups) != 1 {
			t.Fatal(err)
		}
		o := groups[0]
		o.Types = []string{"H100"}
		derived := Derive(o)
		if derived.Spec == nil || derived.Spec.Resources.TotalGPUs != 40 {
			t.Fatalf("%q: it begins as %+v", list, derived)
		}
		run := &rqv1.Run{Spec: *derived.Spec, Status: rqv1.RunStatus{Phase: rqv1.RunRunning}}
		o.Pods = o.Pods[:left]
		var want *Width
		if left < 5 {
			want = &Width{TotalGPUs: 40, Ranks: ptr.To(left), Malleable: &rqv1.RunMalleable{MinTotalGPUs: 8 * left,
				MaxTotalGPUs: 40, StepGPUs: 8, DesiredTotalGPUs: ptr.To[int32](40)}}
		}
		if diff := cmp.Diff(want, Resized(run, o, append(o.Pods[:0:0], rankOf(4)))); diff != "" {
			t.Errorf("%q: (-want +got):\n%s", list, diff)
		}
	}
}
