package watch

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
)

// feed is an API server that changes objects: each change has the next version.
type feed struct {
	t       *testing.T
	r       *reporter
	version int
}

func (f *feed) next() string {
	f.version++
	return fmt.Sprint(f.version)
}

func (f *feed) run(run rqv1.Run) {
	run.ResourceVersion = f.next()
	f.r.run(&run)
}

func (f *feed) leases(leases ...rqv1.Lease) {
	for i := range leases {
		leases[i].ResourceVersion = f.next()
		f.r.lease(&leases[i])
	}
}

func (f *feed) flush() {
	f.t.Helper()
	if err := f.r.flush(); err != nil {
		f.t.Fatal(err)
	}
}

// reporting returns a reporter that writes at noon, and what feeds it.
func reporting(t *testing.T, out io.Writer) *feed {
	return &feed{t: t, r: &reporter{out: out, now: func() time.Time { return clitest.Noon }}}
}

func TestReporter(t *testing.T) {
	var text strings.Builder
	clock := clitest.Noon
	f := reporting(t, &text)
	f.r.now = func() time.Time { return clock }
	run := clitest.RunOf("trainer", 16, 0, rqv1.RunStatus{})
	f.run(run)
	first, second := clitest.As(clitest.LeaseOf(&run, "trainer-0", 0, "a1"), rqv1.RoleActive, 0),
		clitest.As(clitest.LeaseOf(&run, "trainer-1", 0, "a2"), rqv1.RoleActive, 1)
	f.leases(first, second)
	f.flush()
	clock = clock.Add(time.Second)
	run.Status = clitest.Runs(16)
	f.run(run)
	f.run(run) // nothing new
	run.Status.Width = clitest.Ptr(*run.Status.Width)
	run.Status.Width.Pending = "Grow to 32"
	f.run(run)
	run.Status.AtRisk = []rqv1.RunRisk{{Reservation: "mm/big-r0", At: clitest.After(15 * time.Minute),
		Probability: "0.25", Cuts: []rqv1.RiskCut{{Action: rqv1.CutLottery, GPUs: 16, Probability: "0.25"}}}}
	f.run(run)
	f.flush()
	clock = clock.Add(time.Second)
	f.run(run) // the countdown goes on, and that is not news
	waiting := clitest.RunOf("next", 64, 0, clitest.Waits("InsufficientGPUs", "short by 8 GPUs"))
	waiting.Status.EarliestStart = clitest.Ptr(clitest.After(15 * time.Minute))
	f.run(waiting)
	back := clitest.RunOf("back", 8, 0, clitest.Waits("InsufficientGPUs", "8 GPUs are needed"))
	for _, ahead := range []int32{214, 1, 0} {
		back.Status.Queue = &rqv1.RunQueue{Ahead: ahead, Of: 300, At: clitest.After(0)}
		f.run(back)
	}
	run.Status.AtRiskTotal = 24
	f.run(run)
	ended := clitest.Closed(first, time.Minute, rqv1.ClosedCompleted)
	f.leases(ended, ended) // a closed GPU lease that is touched again
	f.r.gone(&run, f.next())
	f.flush()
	clitest.Golden(t, "watch", text.String())

	text.Reset()
	f = reporting(t, &text)
	f.r.colours, f.r.eachLease, f.r.namespaces = true, true, true
	f.leases(first, second)
	f.run(run)
	f.flush()
	clitest.Golden(t, "watch-wide", text.String())
}

// The two ways by which changes come are not in step: what is told is in the order of the versions, even so.
func TestReporterOrdersChanges(t *testing.T) {
	run := clitest.RunOf("trainer", 16, 0, clitest.Runs(16))
	lease := clitest.As(clitest.LeaseOf(&run, "trainer-0", 0, "a1"), rqv1.RoleActive, 0)
	lease.ResourceVersion, run.ResourceVersion = "9", "10"
	var texts [2]strings.Builder
	for i := range texts {
		f := reporting(t, &texts[i])
		if i == 0 {
			f.r.lease(&lease)
			f.r.run(&run)
		} else {
			f.r.run(&run)
			f.r.lease(&lease)
		}
		f.flush()
	}
	want := `12:00:00  trainer  opened a GPU lease (Start): 8 GPUs on a1, paid by rai/west-h100 (org:ai:rai)
12:00:00  trainer  Running    16/16 GPUs   [leases: 1 active]  bound 16 GPUs
`
	for i := range texts {
		if got := texts[i].String(); got != want {
			t.Errorf("order %d: %s", i, got)
		}
	}
}

// reportingGuarded has a Run of two groups with spares be told of that runs, and returns it and its open Leases.
func reportingGuarded(t *testing.T, text *strings.Builder) (*feed, rqv1.Run, []rqv1.Lease) {
	f := reporting(t, text)
	run := clitest.RunOf("guarded", 64, 32, clitest.Runs(64))
	run.Spec.SparesPerGroup = clitest.Ptr[int32](8)
	open := clitest.Guarded(&run)
	f.r.begin(open)
	f.run(run)
	f.flush()
	return f, run, open
}

// A Run of two groups with spares loses nodes: once a node whose spare's swap is seen at once, once one whose spare
// is slow, and then all nodes of a group.
func TestReporterTellsSwaps(t *testing.T) {
	var text strings.Builder
	f, run, open := reportingGuarded(t, &text)

	swapped := clitest.Since(clitest.As(clitest.LeaseOf(&run, "new-1", 0, "s0"), rqv1.RoleActive, 1), time.Hour,
		rqv1.ReasonSwap)
	f.leases(clitest.Closed(open[8], time.Hour, rqv1.ClosedSwap), clitest.Closed(open[1], time.Hour,
		rqv1.ClosedNodeFailure), swapped)
	run.Status.Message = "group 0 swapped to spare after node failure"
	f.run(run)
	f.flush()

	f.leases(clitest.Closed(open[5], 2*time.Hour, rqv1.ClosedNodeFailure))
	f.flush()
	slow := clitest.Since(clitest.As(clitest.LeaseOf(&run, "new-5", 1, "s1"), rqv1.RoleActive, 5), 2*time.Hour,
		rqv1.ReasonSwap)
	f.leases(clitest.Closed(open[9], 2*time.Hour, rqv1.ClosedSwap), slow)
	f.flush()

	// The node of the replacement is lost, and its next one opens before the GPU lease on it is closed.
	again := clitest.Since(clitest.As(clitest.LeaseOf(&run, "again-1", 0, "x0"), rqv1.RoleActive, 1), 3*time.Hour,
		rqv1.ReasonSwap)
	f.leases(again)
	f.flush()
	f.leases(clitest.Closed(swapped, time.Hour, rqv1.ClosedNodeFailure))
	f.flush()

	var failed, fresh []rqv1.Lease
	for i := range 4 {
		failed = append(failed, clitest.Closed(open[4+i], 4*time.Hour, rqv1.ClosedNodeFailure))
		fresh = append(fresh, clitest.Since(clitest.As(clitest.LeaseOf(&run, fmt.Sprint("fresh-", i), 1, fmt.Sprint("y", i)),
			rqv1.RoleActive, 4+i), 4*time.Hour, rqv1.ReasonSwap))
	}
	failed[1] = clitest.Closed(slow, time.Hour, rqv1.ClosedNodeFailure)
	f.leases(append(failed, fresh...)...)
	f.flush()
	clitest.Golden(t, "watch-swap", text.String())
}

// Shards of an opportunistic Run come and go.
func TestReporterTellsShards(t *testing.T) {
	var text strings.Builder
	f := reporting(t, &text)
	run := clitest.RunOf("sweep", 8, 0, rqv1.RunStatus{Phase: rqv1.RunPending, Message: "waiting for idle GPUs",
		Width: &rqv1.RunWidth{Max: 8, Desired: 8}})
	run.Spec.Opportunistic = true
	f.run(run)
	var shards []rqv1.Lease
	for i := range 4 {
		shard := clitest.As(clitest.LeaseOf(&run, fmt.Sprint("sweep-", i), 0, fmt.Sprint("n", i/2)), rqv1.RoleBorrowed, i)
		shard.Spec.Slice.Nodes[0].GPUs = 2
		shards = append(shards, shard)
	}
	f.leases(shards...)
	run.Status.Phase, run.Status.Message = rqv1.RunRunning, "4 shards run"
	run.Status.Width = &rqv1.RunWidth{Max: 8, Desired: 8, Allocated: 8}
	f.run(run)
	f.flush()
	f.leases(clitest.Closed(shards[2], time.Hour, rqv1.ClosedReclaimedBySpare),
		clitest.Closed(shards[3], time.Hour, rqv1.ClosedReclaimedBySpare))
	f.flush()
	f.leases(clitest.Closed(shards[1], time.Hour, rqv1.ClosedReclaimed))
	run.Status.Width = &rqv1.RunWidth{Max: 8, Desired: 8, Allocated: 2}
	f.run(run)
	f.flush()
	clitest.Golden(t, "watch-shards", text.String())
}

// A thousand pods that start, and lose a domain of nodes, are told in a few lines.
func TestReporterDoesNotFlood(t *testing.T) {
	var text strings.Builder
	f := reporting(t, &text)
	run := clitest.RunOf("huge", 8000, 2000, clitest.Runs(8000))
	var leases, lost, moved []rqv1.Lease
	for i := range 1000 {
		lease := clitest.As(clitest.LeaseOf(&run, fmt.Sprint("h-", i), int32(i/250), fmt.Sprint("n", i)), rqv1.RoleActive, i)
		leases = append(leases, lease)
		if i%3 == 0 {
			lost = append(lost, clitest.Closed(lease, time.Hour, rqv1.ClosedNodeFailure))
			moved = append(moved, clitest.Since(clitest.As(clitest.LeaseOf(&run, fmt.Sprint("m-", i), int32(i/250),
				fmt.Sprint("x", i)), rqv1.RoleActive, i), time.Hour, rqv1.ReasonSwap))
		}
	}
	f.leases(leases...)
	f.run(run)
	f.leases(lost...)
	f.leases(moved...)
	f.flush()
	clitest.Golden(t, "watch-huge", text.String())
}

// After changes have been missed, what is open is counted anew, and what has opened meanwhile is told.
func TestReporterResumes(t *testing.T) {
	var text strings.Builder
	f, run, open := reportingGuarded(t, &text)
	fresh := clitest.Since(clitest.As(clitest.LeaseOf(&run, "g-s0-again", 0, "s9"), rqv1.RoleSpare, 0), time.Hour,
		rqv1.ReasonStart)
	f.r.resume("", append(open[:8:8], fresh), f.next())
	f.flush()
	f.r.drop(&fresh)
	f.flush()
	clitest.Golden(t, "watch-resume", text.String())
}
