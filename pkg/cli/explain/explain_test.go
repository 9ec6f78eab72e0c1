package explain

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

func TestExplanation(t *testing.T) {
	running := clitest.RunOf("trainer", 16, 8, clitest.Runs(16))
	earlier := running
	earlier.UID = "earlier"
	leases := []rqv1.Lease{
		clitest.As(clitest.LeaseOf(&running, "trainer-1", 1, "b1"), rqv1.RoleActive, 1),
		clitest.Since(clitest.LeaseOf(&running, "trainer-0", 0, "a1"), time.Second, rqv1.ReasonSwap),
		clitest.Closed(clitest.LeaseOf(&running, "trainer-0-lost", 0, "a9"), time.Second, rqv1.ClosedNodeFailure),
		clitest.LeaseOf(&earlier, "trainer-old", 0, "a2"),
	}
	nodes := nodeFacts{domains: map[string]string{"a1": "us-west/gpu-a/A", "b1": "us-west/gpu-a/B"}}
	events := []corev1.Event{
		{ObjectMeta: metav1.ObjectMeta{Name: "b"}, LastTimestamp: clitest.After(10 * time.Second), Type: "Normal",
			Reason: "Running", Message: "bound 16 GPUs", Count: 2},
		{ObjectMeta: metav1.ObjectMeta{Name: "a"}, EventTime: metav1.NewMicroTime(clitest.Noon.Add(10*time.Second +
			time.Millisecond)), Type: "Normal", Reason: "Pending", Message: "waiting\x1b[31m"},
	}
	lookedAt := clitest.Waits("InsufficientGPUs", "short by 8 GPUs")
	dated := clitest.Waits("InsufficientGPUs", "short by 8 GPUs")
	dated.EarliestStart, dated.PendingReservation = clitest.Ptr(clitest.After(15*time.Minute)), "big-1"
	overtime := clitest.Waits(rqv1.ReasonTimedOut, "ran for its maxDuration of 30s; it starts again from its checkpoint, "+
		"and has its place in line since 2030-01-02T12:00:40Z")
	overtime.Attempt, overtime.PlaceSince = 2, clitest.Ptr(clitest.After(40*time.Second))
	overtime.Timeouts = &rqv1.RunTimeouts{Count: 2, Last: *overtime.PlaceSince, Attempt: 1}
	at := evidence{now: clitest.Noon.Add(time.Minute)}
	unreadable := explain(clitest.Ptr(clitest.RunOf("waits", 16, 16, lookedAt)), at)
	unreadable.Unread = []string{`events: User "bob" cannot list resource "events"`}
	for name, e := range map[string]explanation{
		"explain-running": explain(&running, evidence{now: at.now, leases: leases, nodes: nodes, events: events}),
		"explain-new":     explain(clitest.Ptr(clitest.RunOf("new", 8, 0, rqv1.RunStatus{})), at),
		"explain-poor":    explain(clitest.Ptr(clitest.RunOf("poor", 16, 0, clitest.Poor())), at),
		"explain-waits":   unreadable,
		"explain-again":   explain(clitest.Ptr(clitest.RunOf("again", 16, 0, overtime)), at),
		"explain-dated":   explain(clitest.Ptr(clitest.RunOf("dated", 16, 0, dated)), at),
	} {
		var text strings.Builder
		if err := writeExplanation(&text, e, session.Form{}, false); err != nil {
			t.Fatal(err)
		}
		clitest.Golden(t, name, text.String())
	}
}
