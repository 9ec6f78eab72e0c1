package lifecycle

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// sweep is an opportunistic Run of four shards that run, of which some have been told to go.
func sweep(why rqv1.ClosureReason, told ...types.UID) Observed {
	return scene(func(o *Observed) {
		o.Run.Spec.Opportunistic = true
		o.Run.Status.Phase = rqv1.RunRunning
		o.pods("n0", "n1", "n2", "n3")
		o.leases(time.Minute, everywhere())
		for _, lease := range o.Leases {
			lease.Spec.Slice.Role = rqv1.RoleBorrowed
		}
		o.Told = map[types.UID]rqv1.ClosureReason{}
		for _, pod := range told {
			o.Told[pod] = why
		}
	})
}

// dies has a process die once it has carried out a decision's deletions, and whoever takes over see the pods gone, the
// Reservations over, and nothing that only the dead one knew.
func (o *Observed) dies() {
	d := Decide(*o)
	if d.TellFirst() {
		run := o.Run.DeepCopy()
		run.Status = *d.Status
		for i := range run.Status.Conditions {
			at := &run.Status.Conditions[i].LastTransitionTime
			at.Time = at.Truncate(time.Second) // as the API keeps it
		}
		o.Run = run
	}
	gone := map[*corev1.Pod]bool{}
	for _, deletion := range d.Delete {
		gone[deletion.Pod] = true
	}
	o.Pods = slices.DeleteFunc(slices.Clone(o.Pods), func(pod *corev1.Pod) bool { return gone[pod] })
	o.Cuts, o.Told = nil, nil
}

// TestAReasonOutlivesTheProcess has the scheduler die between ending pods and closing their Leases. Whoever takes over
// closes them for what the pods were ended for.
func TestAReasonOutlivesTheProcess(t *testing.T) {
	for name, test := range map[string]struct {
		observed Observed
		closes   int
		reason   rqv1.ClosureReason
	}{
		"shards":            {sweep(rqv1.ClosedReclaimed, "00000001", "00000003"), 2, rqv1.ClosedReclaimed},
		"shards on a spare": {sweep(rqv1.ClosedReclaimedBySpare, "00000000"), 1, rqv1.ClosedReclaimedBySpare},
		"all shards of a Run without a status": {func() Observed {
			o := sweep(rqv1.ClosedReclaimed, "00000000", "00000001", "00000002", "00000003")
			o.Run.Status = rqv1.RunStatus{Phase: rqv1.RunPending, Message: Waiting}
			return o
		}(), 4, rqv1.ClosedReclaimed},
		"a lottery": {victim([]rank.Cut{cut(rqv1.CutLottery, nil)}, nil), 6, rqv1.ClosedRandomPreempt},
		"a lottery with a return": {victim([]rank.Cut{cut(rqv1.CutLottery, nil)}, checkpointed), 6,
			rqv1.ClosedRandomPreempt},
		"a shrink that it was told": {victim([]rank.Cut{shrinkTo(16)}, func(o *Observed) { o.Run.Status.Width.Granted = 16 }),
			3, rqv1.ClosedShrink},
	} {
		o := test.observed
		o.dies()
		closings := Decide(o).Close
		if len(closings) != test.closes {
			t.Errorf("%s: %d Leases are closed, want %d", name, len(closings), test.closes)
		}
		for _, closing := range closings {
			if closing.Reason != test.reason {
				t.Errorf("%s: %s is closed as %s, want %s", name, closing.Lease.Name, closing.Reason, test.reason)
			}
		}
	}
}

// TestWhatAShardWasToldIsOfThatTimeAndThatShard has shards end that were not told to give way, or were told before they
// began again.
func TestWhatAShardWasToldIsOfThatTimeAndThatShard(t *testing.T) {
	o := sweep(rqv1.ClosedReclaimed, "00000001")
	o.dies()
	o.Pods = slices.DeleteFunc(o.Pods, func(pod *corev1.Pod) bool { return pod.UID == "00000002" })
	reasons := map[string]rqv1.ClosureReason{}
	for _, closing := range Decide(o).Close {
		reasons[closing.Lease.Name] = closing.Reason
	}
	if reasons["lease-1"] != rqv1.ClosedReclaimed || reasons["lease-2"] != rqv1.ClosedDeleted {
		t.Errorf("a shard that was told to go, and one that somebody deleted: %v", reasons)
	}

	o.Leases = []*rqv1.Lease{o.Leases[1]}
	o.Leases[0].Spec.Start.Time = noon.Add(time.Minute) // it has begun again since
	if closings := Decide(o).Close; len(closings) != 1 || closings[0].Reason != rqv1.ClosedDeleted {
		t.Errorf("a shard that somebody deleted, long after it had given way once: %+v", closings)
	}
}

// TestAShardWithoutALeaseIsNotTold has a shard give way before it has a Lease, beside one that has: nothing of the
// first is to be closed, and it does not take the other's place in the condition.
func TestAShardWithoutALeaseIsNotTold(t *testing.T) {
	o := sweep(rqv1.ClosedReclaimed, "00000000")
	o.Told["00000001"] = rqv1.ClosedReclaimedBySpare
	o.Leases = o.Leases[1:]
	for range 2 { // the second time it has been said
		d := Decide(o)
		if d.Status == nil {
			break
		}
		o.Run = o.Run.DeepCopy()
		o.Run.Status = *d.Status
	}
	told := meta.FindStatusCondition(o.Run.Status.Conditions, rqv1.ConditionReclaimed)
	if told == nil || told.Reason != string(rqv1.ClosedReclaimedBySpare) || !strings.HasPrefix(told.Message, "shards 1 ") {
		t.Errorf("the condition is %+v", told)
	}
}

// TestAShardWhoseLeaseIsBeingWrittenIsTold has a shard give way meanwhile, and the scheduler die: whoever takes over
// finds the Lease without its pod, and knows why.
func TestAShardWhoseLeaseIsBeingWrittenIsTold(t *testing.T) {
	o := sweep(rqv1.ClosedReclaimed, "00000000")
	written := o.Leases
	o.Leases, o.Opening = o.Leases[1:], map[types.UID]bool{"00000000": true}
	o.Pods[0].Spec.NodeName = "" // it is bound once it has its Lease
	o.dies()
	o.Leases, o.Opening = written, nil
	if closings := Decide(o).Close; len(closings) != 1 || closings[0].Reason != rqv1.ClosedReclaimed {
		t.Errorf("Leases are closed: %+v", closings)
	}
}

// TestShardsThatHaveBeenToldStayInTheCondition until their Leases are closed: others give way in between, for the same
// reason or for another, and each Lease is closed for its own.
func TestShardsThatHaveBeenToldStayInTheCondition(t *testing.T) {
	for _, first := range []rqv1.ClosureReason{rqv1.ClosedReclaimed, rqv1.ClosedReclaimedBySpare} {
		o := sweep(first, "00000001")
		o.dies()
		o.Now = noon.Add(2 * time.Second)
		o.Told = map[types.UID]rqv1.ClosureReason{"00000003": rqv1.ClosedReclaimed}
		o.dies()
		closings := Decide(o).Close
		got := map[string]rqv1.ClosureReason{}
		for _, closing := range closings {
			got[closing.Lease.Name] = closing.Reason
		}
		want := map[string]rqv1.ClosureReason{"lease-1": first, "lease-3": rqv1.ClosedReclaimed}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s first, Leases by reason (-want +got):\n%s", first, diff)
		}
	}
}

// TestAShardWhoseLeaseIsNotListedStaysInTheCondition: another gives way before the Lease of the first comes to the
// cache, or while it is being written, and then the process dies.
func TestAShardWhoseLeaseIsNotListedStaysInTheCondition(t *testing.T) {
	for name, edit := range map[string]func(*Observed){
		"it is being written": func(o *Observed) { o.Opening = map[types.UID]bool{"00000000": true} },
		"it is written":       func(o *Observed) { o.Leased = map[types.UID]bool{"00000000": true} },
	} {
		o := sweep(rqv1.ClosedReclaimedBySpare, "00000000")
		written := o.Leases
		o.Leases = o.Leases[1:]
		edit(&o)
		run := o.Run.DeepCopy()
		run.Status = *Decide(o).Status
		o.Run = run // and its pod could not be deleted
		o.Told["00000003"] = rqv1.ClosedReclaimed
		o.dies()
		o.Leases, o.Opening, o.Leased = written, nil, nil
		got := map[string]rqv1.ClosureReason{}
		for _, closing := range Decide(o).Close {
			got[closing.Lease.Name] = closing.Reason
		}
		want := map[string]rqv1.ClosureReason{"lease-0": rqv1.ClosedReclaimedBySpare, "lease-3": rqv1.ClosedReclaimed}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s, Leases by reason (-want +got):\n%s", name, diff)
		}
	}
}

// TestAShardHasTimeToEnd: with none its object would go while its containers run.
func TestAShardHasTimeToEnd(t *testing.T) {
	own := int64(30)
	o := scene(func(o *Observed) {
		o.pods("n0")
		o.Pods[0].Spec.TerminationGracePeriodSeconds, o.OpportunisticGrace = &own, 0
	})
	if got := factsOf(o).noticeOfReclaim(o.Pods[0]).GraceSeconds; got != atOnce {
		t.Errorf("it has %d s to end", got)
	}
}
