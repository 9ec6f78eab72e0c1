package cli

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares a text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got); run with -update if the new text is right:\n%s", path, diff)
	}
}

// noon is the instant at which the tests' Runs are submitted.
var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

func after(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(d)) }

func ptr[T any](v T) *T { return &v }

// runOf makes a Run of an owner in groups.
func runOf(name string, gpus, group int32, status rqv1.RunStatus) rqv1.Run {
	run := rqv1.Run{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "rai", UID: types.UID(name + "-uid"), Generation: 1, CreationTimestamp: after(0)},
		Spec:       rqv1.RunSpec{Owner: "org:ai:rai", Resources: rqv1.RunResources{GPUType: "H100-80GB", TotalGPUs: gpus}},
		Status:     status,
	}
	if group > 0 {
		run.Spec.Locality = &rqv1.RunLocality{GroupGPUs: ptr(group)}
	}
	return run
}

// leaseOf makes an open GPU lease of eight GPUs from ten seconds after noon.
func leaseOf(run *rqv1.Run, name string, group int32, node string) rqv1.Lease {
	return rqv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: run.Namespace, UID: types.UID(name)},
		Spec: rqv1.LeaseSpec{
			Owner:          run.Spec.Owner,
			RunRef:         rqv1.LeaseRunRef{Name: run.Name, Namespace: run.Namespace, UID: run.UID},
			GroupIndex:     group,
			Slice:          rqv1.LeaseSlice{Role: rqv1.RoleActive, Nodes: []rqv1.NodeGPUs{{Name: node, GPUs: 8}}},
			Payer:          rqv1.LeasePayer{Budget: "rai", Owner: "org:ai:rai"},
			PaidByEnvelope: "west-h100",
			Reason:         rqv1.ReasonStart,
			Start:          metav1.NewMicroTime(noon.Add(10 * time.Second)),
		},
	}
}

// as is the GPU lease of a pod of a role, by its index.
func as(lease rqv1.Lease, role rqv1.LeaseRole, index int) rqv1.Lease {
	lease.Spec.Slice.Role = role
	lease.Labels = map[string]string{rqv1.LabelIndex: fmt.Sprint(index)}
	return lease
}

// since is the GPU lease as opened for a reason, a time after the first ones.
func since(lease rqv1.Lease, later time.Duration, reason rqv1.LeaseReason) rqv1.Lease {
	lease.Spec.Start = metav1.NewMicroTime(lease.Spec.Start.Add(later))
	lease.Spec.Reason = reason
	return lease
}

// closed is the GPU lease closed after a time of holding.
func closed(lease rqv1.Lease, held time.Duration, reason rqv1.ClosureReason) rqv1.Lease {
	lease.Status = rqv1.LeaseStatus{
		Closed: true, Ended: ptr(metav1.NewMicroTime(lease.Spec.Start.Add(held))), ClosureReason: reason}
	return lease
}

func waits(reason, message string) rqv1.RunStatus {
	return rqv1.RunStatus{
		ObservedGeneration: 1, Phase: rqv1.RunPending, Message: message,
		Conditions: []metav1.Condition{
			{Type: rqv1.ConditionStarted, Status: metav1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: after(time.Second)},
			{Type: rqv1.ConditionFinished, Status: metav1.ConditionFalse, Reason: "Unfinished", LastTransitionTime: after(time.Second)},
		},
	}
}

func runs(gpus int32) rqv1.RunStatus {
	return rqv1.RunStatus{
		ObservedGeneration: 1, Phase: rqv1.RunRunning, Message: "bound 16 GPUs",
		Width:   &rqv1.RunWidth{Min: gpus, Max: gpus, Desired: gpus, Allocated: gpus},
		Funding: &rqv1.RunFundingStatus{OwnedGPUs: gpus},
		Conditions: []metav1.Condition{
			{Type: rqv1.ConditionStarted, Status: metav1.ConditionTrue, Reason: "Started", Message: "bound 16 GPUs", LastTransitionTime: after(10 * time.Second)},
		},
	}
}
