package history

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// ledger is the GPU leases of Runs of every fate, and the Runs that are still there.
func ledger() []client.Object {
	runs := clitest.RunOf("runs", 16, 0, clitest.Runs(16))
	done := clitest.RunOf("done", 16, 0, rqv1.RunStatus{Phase: rqv1.RunCompleted})
	gone := clitest.RunOf("gone", 16, 0, rqv1.RunStatus{})
	again := *gone.DeepCopy()
	again.UID = "gone-again"
	cut := clitest.RunOf("cut", 8, 0, rqv1.RunStatus{})
	cut.Namespace, cut.Spec.Owner = "mm", "org:ai:mm"
	done.Spec.Submitter, runs.Spec.Submitter = "ada", "ben"
	objects := []client.Object{&runs, &done}
	add := func(lease rqv1.Lease, edits ...func(*rqv1.Lease)) {
		for _, edit := range edits {
			edit(&lease)
		}
		lease.Labels = map[string]string{rqv1.LabelRun: lease.Spec.RunRef.Name}
		objects = append(objects, &lease)
	}
	spare := func(l *rqv1.Lease) { l.Spec.Slice.Role, l.Spec.Payer.Rate = rqv1.RoleSpare, "0.5" }
	by := func(budget, envelope string) func(*rqv1.Lease) {
		return func(l *rqv1.Lease) { l.Spec.Payer.Budget, l.Spec.PaidByEnvelope = budget, envelope }
	}
	add(clitest.LeaseOf(&runs, "runs-0", 0, "a1"))
	add(clitest.LeaseOf(&runs, "runs-1", 0, "a2"), by("mm", "pool"))
	add(clitest.LeaseOf(&runs, "runs-s0", 0, "a3"), spare)
	// A rank of done was moved: it never had more than 16 GPUs at a time.
	add(clitest.Closed(clitest.LeaseOf(&done, "done-0", 0, "b1"), 30*time.Minute, rqv1.ClosedCompleted))
	add(clitest.Closed(clitest.LeaseOf(&done, "done-1", 0, "b2"), 10*time.Minute, rqv1.ClosedNodeFailure))
	add(clitest.Closed(clitest.Since(clitest.LeaseOf(&done, "done-1b", 0, "b3"), 10*time.Minute, rqv1.ReasonSwap),
		20*time.Minute, rqv1.ClosedCompleted))
	add(clitest.Closed(clitest.LeaseOf(&gone, "gone-0", 0, "c1"), time.Minute, rqv1.ClosedDeleted))
	add(clitest.Since(clitest.LeaseOf(&again, "gone-again-0", 0, "c1"), 45*time.Minute, rqv1.ReasonStart))
	add(clitest.Closed(clitest.LeaseOf(&cut, "cut-0", 0, "c2"), 5*time.Minute, rqv1.ClosedRandomPreempt))
	return objects
}

func TestHistory(t *testing.T) {
	server := clitest.NewServer(t, ledger()...)
	for name, args := range map[string]string{"history": "", "history-wide": "-A -o wide"} {
		said := clitest.Do(t, server, Command, strings.Fields(args)...)
		if said.Code != 0 || said.Err != "" {
			t.Errorf("%s: %+v", name, said)
		}
		clitest.Golden(t, name, said.Out)
	}
}

func TestWhichRunsAreShown(t *testing.T) {
	server := clitest.NewServer(t, ledger()...)
	for args, want := range map[string][]types.UID{
		"":                          {"done-uid", "gone-uid", "runs-uid", "gone-again"},
		"-A":                        {"cut-uid", "done-uid", "gone-uid", "runs-uid", "gone-again"},
		"gone":                      {"gone-uid", "gone-again"},
		"--since 50m":               {"done-uid", "runs-uid", "gone-again"},
		"-A --owner org:ai:mm":      {"cut-uid"},
		"-A --owner org:ai:*":       {"cut-uid", "done-uid", "gone-uid", "runs-uid", "gone-again"},
		"-A --mine":                 {"done-uid"},
		"--since 2030-01-02T12:59Z": nil,
	} {
		said := clitest.Do(t, server, Command, append(strings.Fields(args), "-o", "json")...)
		if want == nil {
			if said.Code != session.ExitUsage {
				t.Errorf("history %s: %+v", args, said)
			}
			continue
		}
		var got answer
		if err := json.Unmarshal([]byte(said.Out), &got); err != nil {
			t.Errorf("history %s: %v: %+v", args, err, said)
		}
		var uids []types.UID
		for _, e := range got.Runs {
			uids = append(uids, e.UID)
		}
		if diff := cmp.Diff(want, uids); diff != "" {
			t.Errorf("history %s (-want +got):\n%s", args, diff)
		}
	}
}

func TestHistoryAsData(t *testing.T) {
	said := clitest.Do(t, clitest.NewServer(t, ledger()...), Command, "done", "-o", "json")
	var got answer
	if err := json.Unmarshal([]byte(said.Out), &got); err != nil {
		t.Fatalf("%v: %+v", err, said)
	}
	start, end := clitest.After(10*time.Second), clitest.After(10*time.Second+30*time.Minute)
	want := answer{Runs: []entry{{Namespace: "rai", Run: "done", UID: "done-uid", Owner: "org:ai:rai", State: "Completed",
		Started: start, Ended: &end, ElapsedSeconds: 1800, GPUs: 16, Attempts: 1, GPUHours: "8.00000",
		Payers: []payer{{Budget: "rai", Envelope: "west-h100", Owner: "org:ai:rai", GPUHours: "8.00000"}}}}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(payer{}),
		cmp.Comparer(func(a, b metav1.Time) bool { return a.Time.Equal(b.Time) })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	said = clitest.Do(t, clitest.NewServer(t), Command)
	if said.Code != 0 || said.Err != "No Runs that held GPUs found in namespace rai.\n" {
		t.Errorf("%+v", said)
	}
}
