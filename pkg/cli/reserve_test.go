package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// The story of a Run that was cut by lottery, waits again with a Reservation of its own, and of one that is at risk.
func TestExplainReservations(t *testing.T) {
	big := runOf("big", 128, 32, waits("InsufficientGPUs", "48 GPUs are short in domain B"))
	other := runOf("other", 64, 0, runs(64))
	other.Namespace = "mm"
	earlier := reservationOf(&big, 48)
	earlier.Name, earlier.CreationTimestamp = "big-r9", after(-time.Hour)
	ended := reservationOf(&big, 16, conflict(rqv1.CutLottery, "org:mm", "mm1", 48, "0.5"))
	ended.Status.State, ended.Status.Reason = rqv1.ReservationReleased, "started 128 GPUs"
	ended.Status.ActivatedAt, ended.Status.EndedAt = ptr(metav1.NewMicroTime(noon.Add(15*time.Minute))), ptr(after(16*time.Minute))
	ended.Status.Cuts = []rqv1.Cut{
		{Run: rqv1.NamespacedName{Namespace: "mm", Name: "elastic"}, UID: "elastic-uid", Action: rqv1.CutShrink, GPUs: 16, Width: ptr[int32](96)},
		{Run: rqv1.NamespacedName{Namespace: "mm", Name: "mm1"}, UID: "mm1-uid", Action: rqv1.CutLottery, GPUs: 48},
	}
	other.Spec.Owner = "org:mm"
	theirs := reservationOf(&other, 64)
	theirs.Status.State, theirs.Status.ActivatedAt = rqv1.ReservationActivating, ptr(metav1.NewMicroTime(noon.Add(20*time.Minute)))
	theirs.Status.Cuts = []rqv1.Cut{{Run: rqv1.NamespacedName{Namespace: "rai", Name: "big"}, UID: big.UID, Action: rqv1.CutLottery, GPUs: 128}}
	current := reservationOf(&big, 48, conflict(rqv1.CutLottery, "org:mm", "other", 64, "1"))
	current.Name, current.CreationTimestamp, current.Spec.EarliestStart = "big-r1", after(21*time.Minute), after(36*time.Minute)
	promisedTo(&big, &current)
	threatened := runOf("trainer", 16, 8, runs(16))
	threatened.Status.AtRisk = []rqv1.RunRisk{
		{Reservation: "rai/big-r1", At: after(36 * time.Minute), Probability: "0.25"},
		{Reservation: "secret/hidden-r0", At: after(40 * time.Minute), Probability: "0.5"},
	}
	threatened.Status.Conditions = append(threatened.Status.Conditions, metav1.Condition{Type: rqv1.ConditionAtRisk,
		Status: metav1.ConditionTrue, Reason: "Reserved", Message: "Reservation rai/big-r1 may cut it", LastTransitionTime: after(21 * time.Minute)})
	from := evidence{now: noon.Add(22 * time.Minute), reservations: []rqv1.Reservation{current, theirs, ended, earlier}}
	for name, run := range map[string]*rqv1.Run{"explain-cut": &big, "explain-at-risk": &threatened} {
		var text strings.Builder
		if err := writeExplanation(&text, explain(run, from), false, false); err != nil {
			t.Fatal(err)
		}
		golden(t, name, text.String())
	}
	var text strings.Builder
	if err := inFormat("yaml", &text, explain(&big, from)); err != nil {
		t.Fatal(err)
	}
	golden(t, "explain-cut-yaml", text.String())
}

func TestCutInWords(t *testing.T) {
	for want, cut := range map[string]rqv1.Cut{
		"cut by lottery":    {Action: rqv1.CutLottery},
		"gave up spares":    {Action: rqv1.CutDropSpare, Spares: []int32{1}},
		"shrunk to 96 GPUs": {Action: rqv1.CutShrink, Width: ptr[int32](96)},
		"shrunk":            {Action: rqv1.CutShrink},
	} {
		if diff := cmp.Diff(want, cutInWords(cut)); diff != "" {
			t.Error(diff)
		}
	}
}
