package explain

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// The story of a Run that was cut by lottery, waits again with a Reservation of its own, and of one that is at risk.
func TestExplainReservations(t *testing.T) {
	big := clitest.RunOf("big", 128, 32, clitest.Waits("InsufficientGPUs", "48 GPUs are short in domain B"))
	other := clitest.RunOf("other", 64, 0, clitest.Runs(64))
	other.Namespace = "mm"
	earlier := clitest.ReservationOf(&big, 48)
	earlier.Name, earlier.CreationTimestamp = "big-r9", clitest.After(-time.Hour)
	ended := clitest.ReservationOf(&big, 16, clitest.Conflict(rqv1.CutLottery, "org:mm", "mm1", 48, "0.5"))
	ended.Status.State, ended.Status.Reason = rqv1.ReservationReleased, "started 128 GPUs"
	ended.Status.ActivatedAt, ended.Status.EndedAt = clitest.Ptr(metav1.NewMicroTime(clitest.Noon.Add(15*time.Minute))),
		clitest.Ptr(clitest.After(16*time.Minute))
	ended.Status.Cuts = []rqv1.Cut{
		{Run: rqv1.NamespacedName{Namespace: "mm", Name: "elastic"}, UID: "elastic-uid", Action: rqv1.CutShrink, GPUs: 16,
			Width: clitest.Ptr[int32](96)},
		{Run: rqv1.NamespacedName{Namespace: "mm", Name: "mm1"}, UID: "mm1-uid", Action: rqv1.CutLottery, GPUs: 48},
	}
	other.Spec.Owner = "org:mm"
	theirs := clitest.ReservationOf(&other, 64)
	theirs.Status.State, theirs.Status.ActivatedAt = rqv1.ReservationActivating,
		clitest.Ptr(metav1.NewMicroTime(clitest.Noon.Add(20*time.Minute)))
	theirs.Status.Cuts = []rqv1.Cut{{Run: rqv1.NamespacedName{Namespace: "rai", Name: "big"}, UID: big.UID,
		Action: rqv1.CutLottery, GPUs: 128}}
	current := clitest.ReservationOf(&big, 48, clitest.Conflict(rqv1.CutLottery, "org:mm", "other", 64, "1"))
	current.Name, current.CreationTimestamp, current.Spec.EarliestStart = "big-r1", clitest.After(21*time.Minute),
		clitest.After(36*time.Minute)
	clitest.PromisedTo(&big, &current)
	threatened := clitest.RunOf("trainer", 16, 8, clitest.Runs(16))
	threatened.Status.AtRisk = []rqv1.RunRisk{
		{Reservation: "rai/big-r1", At: clitest.After(36 * time.Minute), Probability: "1",
			Cuts: []rqv1.RiskCut{{Action: rqv1.CutLottery, GPUs: 16, Probability: "0.25"},
				{Action: rqv1.CutShrink, GPUs: 8, Width: 8, Probability: "0.75"}}},
		{Reservation: "secret/hidden-r0", At: clitest.After(40 * time.Minute), Probability: "0.5"},
	}
	threatened.Status.Conditions = append(threatened.Status.Conditions, metav1.Condition{Type: rqv1.ConditionAtRisk,
		Status: metav1.ConditionTrue, Reason: "Reserved", Message: "Reservation rai/big-r1 may cut it",
		LastTransitionTime: clitest.After(21 * time.Minute)})
	hunted := *threatened.DeepCopy()
	hunted.Status.AtRiskTotal = 40
	back := clitest.RunOf("back", 8, 0, clitest.Waits("InsufficientGPUs", "8 GPUs are needed"))
	back.Status.Queue = &rqv1.RunQueue{Ahead: 1, Of: 2, At: clitest.After(20 * time.Minute)}
	from := evidence{now: clitest.Noon.Add(22 * time.Minute), reservations: []rqv1.Reservation{current, theirs, ended,
		earlier}}
	for name, run := range map[string]*rqv1.Run{"explain-cut": &big, "explain-at-risk": &threatened,
		"explain-hunted": &hunted, "explain-in-line": &back} {
		var text strings.Builder
		if err := writeExplanation(&text, explain(run, from), session.Form{}, false); err != nil {
			t.Fatal(err)
		}
		clitest.Golden(t, name, text.String())
	}
	var text strings.Builder
	if err := clitest.InFormat("yaml", &text, explain(&big, from)); err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, "explain-cut-yaml", text.String())
	for name, run := range map[string]*rqv1.Run{"explain-hunted-yaml": &hunted, "explain-in-line-yaml": &back} {
		text.Reset()
		if err := clitest.InFormat("yaml", &text, explain(run, from)); err != nil {
			t.Fatal(err)
		}
		clitest.Golden(t, name, text.String())
	}
}
