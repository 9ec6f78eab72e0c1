package cli

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

func TestRunTable(t *testing.T) {
	borrowing := runs(48)
	borrowing.Funding = &rqv1.RunFundingStatus{OwnedGPUs: 16, BorrowedGPUs: 32, Sponsors: []rqv1.RunSponsor{{Owner: "org:ai:mm", GPUs: 32, Relation: "sponsor"}}}
	dated := runOf("dated", 64, 32, waits("InsufficientGPUs", "short by 8 GPUs"))
	dated.Status.EarliestStart = ptr(after(16 * time.Minute))
	borrowing.AtRisk = []rqv1.RunRisk{
		{Reservation: "mm/later-r0", At: after(time.Hour), Probability: "0.125"},
		{Reservation: "mm/big-r0", At: after(16 * time.Minute), Probability: "0.125"},
		{Reservation: "mm/tiny-r0", At: after(2 * time.Minute), Probability: "0.05"},
	}
	grows := runOf("grows", 96, 32, runs(96))
	grows.UID, grows.Spec.SparesPerGroup = "grows", ptr[int32](4)
	grows.Status.Width.Desired, grows.Status.Width.Pending = 160, "Grow to 128"
	list := []rqv1.Run{
		runOf("new", 8, 0, rqv1.RunStatus{}),
		grows,
		runOf("borrows", 48, 16, borrowing),
		runOf("waits", 64, 32, waits("InsufficientGPUs", "short by 8 GPUs")),
		dated,
	}
	for name, wide := range map[string]bool{"runs": false, "runs-wide": true} {
		var text strings.Builder
		if err := printTable(runTable(list, map[types.UID]int32{"grows": 8}, noon.Add(90*time.Second)), &text, wide, wide); err != nil {
			t.Fatal(err)
		}
		golden(t, name, text.String())
	}
}

func TestStandingBy(t *testing.T) {
	spares := func(status rqv1.RunStatus) *rqv1.Run {
		run := runOf("grows", 96, 32, status)
		run.Spec.Spares = ptr[int32](4)
		return &run
	}
	for want, got := range map[string]string{
		"8/12": standingBy(spares(runs(96)), map[types.UID]int32{"grows-uid": 8}),
		"0/8":  standingBy(spares(runs(64)), map[types.UID]int32{}),
		"?/12": standingBy(spares(rqv1.RunStatus{}), nil),
		"":     standingBy(spares(rqv1.RunStatus{Phase: rqv1.RunCompleted}), map[types.UID]int32{}),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestLeaseTable(t *testing.T) {
	run := runOf("trainer", 16, 0, runs(16))
	lent := closed(leaseOf(&run, "trainer-1", 1, "b1"), 30*time.Minute, rqv1.ClosedNodeFailure)
	lent.Spec.Payer = rqv1.LeasePayer{Budget: "mm", Owner: "org:ai:mm", Relation: rqv1.RelationSponsor, Rate: "0.5"}
	list := []rqv1.Lease{leaseOf(&run, "trainer-0", 0, "a1"), lent}
	for name, wide := range map[string]bool{"leases": false, "leases-wide": true} {
		var text strings.Builder
		table, err := leaseTable(list, noon.Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if err := printTable(table, &text, wide, false); err != nil {
			t.Fatal(err)
		}
		golden(t, name, text.String())
	}
}

func TestOwnerMatches(t *testing.T) {
	for _, c := range []struct {
		pattern string
		owner   rqv1.Owner
		want    bool
	}{
		{"", "org:ai", true},
		{"org:ai", "org:ai", true},
		{"org:ai", "org:ai:rai", false},
		{"org:ai*", "org:ai:rai", true},
		{"org:ai:*", "org:ai", false},
		{"*", "org:ai", true},
	} {
		if got := ownerMatches(c.pattern, c.owner); got != c.want {
			t.Errorf("ownerMatches(%q, %q) = %v", c.pattern, c.owner, got)
		}
	}
}

func TestExplanation(t *testing.T) {
	running := runOf("trainer", 16, 8, runs(16))
	earlier := running
	earlier.UID = "earlier"
	leases := []rqv1.Lease{
		as(leaseOf(&running, "trainer-1", 1, "b1"), rqv1.RoleActive, 1),
		since(leaseOf(&running, "trainer-0", 0, "a1"), time.Second, rqv1.ReasonSwap),
		closed(leaseOf(&running, "trainer-0-lost", 0, "a9"), time.Second, rqv1.ClosedNodeFailure),
		leaseOf(&earlier, "trainer-old", 0, "a2"),
	}
	nodes := nodeFacts{domains: map[string]string{"a1": "us-west/gpu-a/A", "b1": "us-west/gpu-a/B"}}
	events := []corev1.Event{
		{ObjectMeta: metav1.ObjectMeta{Name: "b"}, LastTimestamp: after(10 * time.Second), Type: "Normal", Reason: "Running", Message: "bound 16 GPUs", Count: 2},
		{ObjectMeta: metav1.ObjectMeta{Name: "a"}, EventTime: metav1.NewMicroTime(noon.Add(10*time.Second + time.Millisecond)), Type: "Normal", Reason: "Pending", Message: "waiting\x1b[31m"},
	}
	lookedAt := waits("InsufficientGPUs", "short by 8 GPUs")
	dated := waits("InsufficientGPUs", "short by 8 GPUs")
	dated.EarliestStart, dated.PendingReservation = ptr(after(15*time.Minute)), "big-1"
	at := evidence{now: noon.Add(time.Minute)}
	unreadable := explain(ptr(runOf("waits", 16, 16, lookedAt)), at)
	unreadable.Unread = []string{`events: User "bob" cannot list resource "events"`}
	for name, e := range map[string]explanation{
		"explain-running": explain(&running, evidence{now: at.now, leases: leases, nodes: nodes, events: events}),
		"explain-new":     explain(ptr(runOf("new", 8, 0, rqv1.RunStatus{})), at),
		"explain-waits":   unreadable,
		"explain-dated":   explain(ptr(runOf("dated", 16, 0, dated)), at),
	} {
		var text strings.Builder
		if err := writeExplanation(&text, e, false, false); err != nil {
			t.Fatal(err)
		}
		golden(t, name, text.String())
	}
}

func TestReached(t *testing.T) {
	all := []rqv1.RunPhase{rqv1.RunPending, rqv1.RunRunning, rqv1.RunCompleted, rqv1.RunFailed}
	for _, c := range []struct {
		awaited rqv1.RunPhase
		by      []rqv1.RunPhase
	}{
		{"", []rqv1.RunPhase{rqv1.RunCompleted}},
		{rqv1.RunPending, all},
		{rqv1.RunRunning, []rqv1.RunPhase{rqv1.RunRunning, rqv1.RunCompleted}},
		{rqv1.RunCompleted, []rqv1.RunPhase{rqv1.RunCompleted}},
		{rqv1.RunFailed, []rqv1.RunPhase{rqv1.RunFailed}},
	} {
		for _, phase := range all {
			want := false
			for _, by := range c.by {
				want = want || by == phase
			}
			if got := reached(c.awaited, phase); got != want {
				t.Errorf("reached(%q, %s) = %v", c.awaited, phase, got)
			}
		}
	}
}

func TestOutcome(t *testing.T) {
	phase := func(p rqv1.RunPhase) rqv1.RunStatus { return rqv1.RunStatus{Phase: p, Message: "so it is"} }
	for name, c := range map[string]struct {
		until   rqv1.RunPhase
		a, b    rqv1.RunPhase
		deleted bool // b
		over    bool
		code    int
	}{
		"both completed":               {a: rqv1.RunCompleted, b: rqv1.RunCompleted, over: true},
		"one goes on":                  {a: rqv1.RunCompleted, b: rqv1.RunRunning},
		"one failed, one goes on":      {a: rqv1.RunFailed, b: rqv1.RunRunning},
		"one failed, one completed":    {a: rqv1.RunFailed, b: rqv1.RunCompleted, over: true, code: exitNotReached},
		"one deleted":                  {a: rqv1.RunCompleted, deleted: true, over: true, code: exitNotReached},
		"awaited, one started":         {until: rqv1.RunRunning, a: rqv1.RunRunning, b: rqv1.RunPending},
		"awaited, both started":        {until: rqv1.RunRunning, a: rqv1.RunRunning, b: rqv1.RunCompleted, over: true},
		"awaited, one can no more":     {until: rqv1.RunRunning, a: rqv1.RunPending, b: rqv1.RunFailed, over: true, code: exitNotReached},
		"awaited failure, it is there": {until: rqv1.RunFailed, a: rqv1.RunFailed, b: rqv1.RunFailed, over: true},
	} {
		w := &runWatch{namespace: "rai", names: []string{"a", "b"}, phase: c.until, runs: map[types.NamespacedName]*rqv1.Run{}, deleted: map[string]bool{}}
		for name, p := range map[string]rqv1.RunPhase{"a": c.a, "b": c.b} {
			w.runs[types.NamespacedName{Namespace: "rai", Name: name}] = ptr(runOf(name, 8, 0, phase(p)))
		}
		if c.deleted {
			w.deleted["b"] = true
		}
		over, err := w.outcome()
		code := 0
		if err != nil {
			code = err.(*failure).code
		}
		if over != c.over || code != c.code {
			t.Errorf("%s: over %v with code %d, want %v with %d", name, over, code, c.over, c.code)
		}
	}
}
