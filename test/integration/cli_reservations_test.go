package integration

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// report creates an object and writes its status, as the scheduler does, and removes the object when the test ends.
func report[T client.Object](t *testing.T, object T, status func(T)) {
	t.Helper()
	writer := actAs(t, scheduler)
	if err := writer.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, writer, object) })
	status(object)
	if err := writer.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// promise makes a Reservation for a Run that draws among others, a quarter of an hour from now.
func promise(run *rqv1.Run, name string) *rqv1.Reservation {
	return &rqv1.Reservation{
		ObjectMeta: metav1.ObjectMeta{Namespace: run.Namespace, Name: name},
		Spec: rqv1.ReservationSpec{
			RunRef:        rqv1.NamespacedName{Namespace: run.Namespace, Name: run.Name},
			EarliestStart: metav1.NewTime(time.Now().Add(15 * time.Minute)),
		},
	}
}

// drawAmong publishes the conflict set, the commitment and the forecast.
func drawAmong(r *rqv1.Reservation, nonce [32]byte, tickets ...rqv1.Conflict) {
	r.Status = rqv1.ReservationStatus{
		State: rqv1.ReservationPending,
		Forecast: &rqv1.Forecast{DeficitGPUs: 16, Scope: "fabric.domain=B", Confidence: rqv1.ConfidenceConservative,
			Remedies: []string{"Run fair lottery if deficit remains (16 GPUs)"}},
		ConflictSet: tickets,
		Lottery:     &rqv1.Lottery{Commitment: resolver.Commitment(nonce), Odds: "exact"},
	}
}

// drawAll publishes an activation that needed all tickets.
func drawAll(r *rqv1.Reservation, nonce [32]byte, victims ...*rqv1.Run) {
	l, now := r.Status.Lottery, metav1.NowMicro()
	r.Status.State, r.Status.ActivatedAt = rqv1.ReservationReleased, &now
	r.Status.EndedAt = &metav1.Time{Time: now.Time}
	l.ConflictSetDigest, l.Nonce = resolver.Digest(r.Status.ConflictSet), hex.EncodeToString(nonce[:])
	draw := resolver.NewDraw(nonce, r.Status.ConflictSet)
	for ticket, ok := draw.Next(); ok; ticket, ok = draw.Next() {
		l.Draws = append(l.Draws, rqv1.Draw{Owner: ticket.Owner, Run: ticket.Run})
	}
	for _, victim := range victims {
		r.Status.Cuts = append(r.Status.Cuts,
			rqv1.Cut{Run: rqv1.NamespacedName{Namespace: victim.Namespace, Name: victim.Name},
				UID: victim.UID, Action: rqv1.CutLottery, GPUs: 8})
	}
}

// contest writes, as the scheduler does, a Run that waits, a Reservation of it that has cut two others, and the next
// one, which may cut them again and is returned.
func contest(t *testing.T) *rqv1.Reservation {
	t.Helper()
	for _, ns := range []string{"cli-winner", "cli-loser"} {
		makeNamespace(t, ns)
	}
	lost, other, big := runAs("cli-loser", "lost", "org:loser"), runAs("cli-loser", "other", "org:winner"),
		runAs("cli-winner", "big", "org:winner")
	done, next := promise(big, "big-r0"), promise(big, "big-r1")
	report(t, lost, func(r *rqv1.Run) {
		waiting(r)
		r.Status.AtRisk = []rqv1.RunRisk{{Reservation: "cli-winner/big-r1", At: next.Spec.EarliestStart, Probability: "0.25",
			Cuts: []rqv1.RiskCut{{Action: rqv1.CutLottery, GPUs: 16, Probability: "0.25"}}}}
	})
	report(t, other, waiting)
	report(t, big, func(r *rqv1.Run) {
		waiting(r)
		r.Status.PendingReservation, r.Status.EarliestStart = next.Name, &next.Spec.EarliestStart
	})
	tickets := []rqv1.Conflict{ticketOf(lost), ticketOf(other)}
	report(t, done, func(r *rqv1.Reservation) {
		nonce := resolver.Nonce([]byte("key"), r.UID)
		drawAmong(r, nonce, tickets...)
		drawAll(r, nonce, lost, other)
	})
	report(t, next, func(r *rqv1.Reservation) { drawAmong(r, resolver.Nonce([]byte("key"), r.UID), tickets...) })
	return next
}

func waiting(r *rqv1.Run) {
	r.Status = rqv1.RunStatus{Phase: rqv1.RunPending, ObservedGeneration: r.Generation, Message: "16 GPUs are short",
		Conditions: []metav1.Condition{
			{Type: rqv1.ConditionStarted, Status: metav1.ConditionFalse, Reason: "InsufficientGPUs",
				Message:            "16 GPUs are short",
				LastTransitionTime: metav1.Now()}}}
}

func ticketOf(run *rqv1.Run) rqv1.Conflict {
	return rqv1.Conflict{Run: rqv1.NamespacedName{Namespace: run.Namespace, Name: run.Name}, Owner: run.Spec.Owner,
		Action: rqv1.CutLottery, GPUs: 8, Probability: "1"}
}

// What Reservations say to those who wait, who are at risk and who lost.
func TestCLIReservations(t *testing.T) {
	c, start := apiServer(t), contest(t).Spec.EarliestStart.UTC().Format(time.RFC3339)
	loser, err := c.KubeconfigForUser("lou")
	if err != nil {
		t.Fatal(err)
	}
	bindRole(t, "lou", "cli-loser", "ClusterRole", "view")
	waitAllowed(t, person("lou"), access{"get", rqv1.GroupName, "runs", "cli-loser", "lost"})
	waitAllowed(t, person("lou"), access{"list", rqv1.GroupName, "reservations", "", ""})
	record := mustCommand(t, c, "", "get reservation -n cli-winner big-r0 -o yaml --show-managed-fields")
	for _, step := range []struct {
		name, stdin, line string
		out, err          string // what the output has to contain
		code              int
	}{
		{name: "plan", line: "runs plan -n cli-winner big", out: "DEFICIT     16 GPUs in fabric.domain=B\n"},
		{name: "odds", line: "runs plan -n cli-winner big", out: "Lottery   8      100 %"},
		{name: "start, for a script", line: "runs plan -n cli-winner big -o json", out: `"earliestStart": "` + start},
		{name: "all that wait", line: "runs plan -n cli-winner", out: "conservative"},
		{name: "without a date", line: "runs plan -n cli-loser -o wide", out: "InsufficientGPUs: 16 GPUs are short"},
		{name: "none waits", line: "runs plan", err: "No waiting Runs found in namespace default."},
		{name: "of which", line: "runs plan -A big", err: "leave out -A or the name", code: 2},
		{name: "no such Run", line: "runs plan nothing", err: `Run "nothing" not found`, code: 1},
		{name: "list", line: "runs list -n cli-winner -o wide", out: " (in 1"},
		{name: "the one who waits", line: "runs explain -n cli-winner big", out: "reservation: big-r1 (Pending)"},
		{name: "what the loser reads", line: "runs explain -n cli-loser lost --kubeconfig " + loser,
			out: "cut by lottery: 8 GPUs freed for Run cli-winner/big, Reservation big-r0; check it: kubectl runs explain " +
				"--verify big-r0 -n cli-winner"},
		{name: "what is to come", line: "runs explain -n cli-loser lost --kubeconfig " + loser,
			out: "25 % chance of being ended to make room for cli-winner/big (Reservation cli-winner/big-r1)"},
		{name: "the loser checks", line: "runs explain --verify big-r0 -n cli-winner --kubeconfig " + loser,
			out: "VERDICT    valid\n"},
		{name: "from a file", stdin: record, line: "runs explain --verify -", out: "VERDICT    valid\n"},
		{name: "from an altered file", stdin: strings.Replace(record, "gpus: 8", "gpus: 9", 1),
			line: "runs explain --verify -", out: "VERDICT    not valid\n",
			err: "the record of Reservation cli-winner/big-r0 is not valid", code: 5},
		{name: "too early", line: "runs explain --verify big-r1 -n cli-winner", out: "not revealed yet", code: 6},
		{name: "no such Reservation", line: "runs explain --verify nothing -n cli-winner",
			err: `Reservation "nothing" not found in namespace "cli-winner"`, code: 1},
		{name: "completion", line: "__complete runs explain -n cli-winner --verify b", out: "big-r0\nbig-r1\n"},
	} {
		t.Run(step.name, func(t *testing.T) {
			got := command(t, c, step.stdin, step.line)
			if got.code != step.code || !strings.Contains(got.out, step.out) || !strings.Contains(got.err, step.err) {
				t.Errorf("kubectl %s:\ncode %d, want %d\noutput %q\n  want %q\nerror  %q\n  want %q",
					step.line, got.code, step.code, got.out, step.out, got.err, step.err)
			}
		})
	}
}
