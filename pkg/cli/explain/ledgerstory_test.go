package explain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// explained compares the text about a Run with a golden file, and its data with another one if that is named.
func explained(t *testing.T, name string, run *rqv1.Run, from evidence, wide bool, data string) {
	t.Helper()
	var text strings.Builder
	e := explain(run, from)
	if err := writeExplanation(&text, e, session.Form{Wide: wide}, false); err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, name, text.String())
	if data == "" {
		return
	}
	text.Reset()
	if err := clitest.InFormat("yaml", &text, e); err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, data, text.String())
}

// A Run loses a node, then another one in the same group, and a spare is topped up.
func TestExplainSwaps(t *testing.T) {
	run := clitest.RunOf("guarded", 64, 32, clitest.Runs(64))
	run.Spec.SparesPerGroup = clitest.Ptr[int32](8)
	run.Status.Message = "group 0 swapped to spare after node failure"
	run.Status.Conditions[0].Reason, run.Status.Conditions[0].Message = "Swap", run.Status.Message
	leases := clitest.Guarded(&run)
	leases[8] = clitest.Closed(leases[8], time.Hour, rqv1.ClosedSwap)
	leases[1] = clitest.Closed(leases[1], time.Hour, rqv1.ClosedNodeFailure)
	leases[2] = clitest.Closed(leases[2], 2*time.Hour, rqv1.ClosedNodeFailure)
	leases = append(leases,
		clitest.Since(clitest.As(clitest.LeaseOf(&run, "new-1", 0, "s0"), rqv1.RoleActive, 1), time.Hour+300*time.Millisecond,
			rqv1.ReasonSwap),
		clitest.Closed(clitest.Since(clitest.As(clitest.LeaseOf(&run, "new-s0", 0, "s2"), rqv1.RoleSpare, 0), 90*time.Minute,
			rqv1.ReasonStart), 30*time.Minute, rqv1.ClosedSwap),
		clitest.Since(clitest.As(clitest.LeaseOf(&run, "new-2", 0, "s2"), rqv1.RoleActive, 2), 2*time.Hour, rqv1.ReasonSwap),
	)
	nodes := nodeFacts{lost: map[string]string{
		"n1": clitest.Noon.Add(time.Hour).Format(time.RFC3339Nano) + " KubeletLeaseStale its kubelet has been silent for 20s",
		"n2": clitest.Noon.Add(9*time.Hour).Format(time.RFC3339Nano) + " NodeNotReady lost once more since",
	}}
	explained(t, "explain-swap", &run, evidence{now: clitest.Noon.Add(3 * time.Hour), leases: leases, nodes: nodes}, false,
		"explain-swap-yaml")
}

// A malleable Run grows, shrinks, and is requeued after it was drawn.
func TestExplainWidths(t *testing.T) {
	run := clitest.RunOf("elastic", 32, 8, clitest.Runs(24))
	run.Spec.Malleable = &rqv1.RunMalleable{MinTotalGPUs: 8, MaxTotalGPUs: 32, StepGPUs: 8}
	run.Status.Width = &rqv1.RunWidth{Min: 8, Max: 32, Desired: 32, Granted: 24, Growing: 32, Allocated: 24,
		Pending: "Grow to 32"}
	pod := func(index int, later time.Duration, reason rqv1.LeaseReason) rqv1.Lease {
		return clitest.Since(clitest.As(clitest.LeaseOf(&run, fmt.Sprint("e-", index, "-", later), int32(index),
			fmt.Sprint("n", index)), rqv1.RoleActive, index), later, reason)
	}
	cohort := func(number int32, lease rqv1.Lease) rqv1.Lease {
		lease.Spec.Cohort = number
		return lease
	}
	leases := []rqv1.Lease{
		clitest.Closed(pod(0, 0, rqv1.ReasonStart), time.Hour, rqv1.ClosedRandomPreempt),
		clitest.Closed(pod(1, 0, rqv1.ReasonStart), time.Hour, rqv1.ClosedRandomPreempt),
		clitest.Closed(cohort(1, pod(2, time.Minute, rqv1.ReasonGrow)), 9*time.Minute, rqv1.ClosedShrink),
		clitest.Closed(cohort(2, pod(3, time.Minute+time.Second, rqv1.ReasonGrow)), 9*time.Minute, rqv1.ClosedShrink),
		pod(0, 2*time.Hour, rqv1.ReasonStart), pod(1, 2*time.Hour, rqv1.ReasonStart), pod(2, 3*time.Hour, rqv1.ReasonGrow),
	}
	explained(t, "explain-widths", &run, evidence{now: clitest.Noon.Add(4 * time.Hour), leases: leases}, false, "")
}

// An opportunistic Run has had many shards: the latest are told, or all.
func TestExplainShards(t *testing.T) {
	run := clitest.RunOf("sweep", 8, 0, clitest.Runs(4))
	run.Spec.Opportunistic, run.Spec.Resources.GPUsPerPod = true, clitest.Ptr[int32](2)
	run.Status.Message = "2 of 4 shards run; the others wait for idle GPUs"
	run.Status.Width = &rqv1.RunWidth{Max: 8, Desired: 8, Allocated: 4}
	shard := func(index int, later time.Duration) rqv1.Lease {
		lease := clitest.Since(clitest.As(clitest.LeaseOf(&run, fmt.Sprint("sweep-", index, "-", later), 0,
			fmt.Sprint("n", index)), rqv1.RoleBorrowed, index), later, rqv1.ReasonStart)
		lease.Spec.Slice.Nodes[0].GPUs = 2
		return lease
	}
	var leases []rqv1.Lease
	for hour := range 12 {
		leases = append(leases,
			clitest.Closed(shard(2, time.Duration(hour)*time.Hour), 30*time.Minute, rqv1.ClosedReclaimedBySpare),
			clitest.Closed(shard(3, time.Duration(hour)*time.Hour), 30*time.Minute, rqv1.ClosedReclaimedBySpare))
	}
	leases = append(leases, clitest.Closed(shard(1, 0), 12*time.Hour, rqv1.ClosedReclaimed), shard(0, 0),
		shard(1, 13*time.Hour))
	at := evidence{now: clitest.Noon.Add(14 * time.Hour), leases: leases}
	explained(t, "explain-shards", &run, at, false, "")
	explained(t, "explain-shards-wide", &run, at, true, "")
}
