package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// warned has a Run have been told half an hour ago that it is at risk.
func warned(o *Observed) {
	o.Run.Status.Conditions = append(o.Run.Status.Conditions, metav1.Condition{Type: rqv1.ConditionAtRisk,
		Status: metav1.ConditionTrue, Reason: "Reserved", Message: "50 % chance of being ended",
		LastTransitionTime: metav1.NewTime(noon.Add(-30 * time.Minute))})
}

// riskSaid carries decisions out until nothing is left to do, and returns what the Run's condition says, each change
// once.
func riskSaid(o *Observed) []string {
	var said []string
	for range 12 {
		o.carryOut(Decide(*o), -1)
		c := meta.FindStatusCondition(o.Run.Status.Conditions, rqv1.ConditionAtRisk)
		if c == nil {
			continue
		}
		if is := string(c.Status) + " " + c.Reason + ": " + c.Message; len(said) == 0 || said[len(said)-1] != is {
			said = append(said, is)
		}
	}
	return said
}

// Whoever is being cut is not told that it is safe: the risk that was announced has come true. It is safe, if nothing
// else threatens it, once it has given up what it was cut by.
func TestWhoIsBeingCutIsNotSafe(t *testing.T) {
	const since = "the risk announced at 2026-03-01T11:30:00Z has come true: "
	const safe = "False Safe: no Reservation needs the Run's GPUs"
	drawn := since + "cut by lottery for Run ns/other (Reservation ns/other-r0)"
	shrunk := "shrunk for Run ns/other (Reservation ns/other-r0)"
	lottery := []rank.Cut{cut(rqv1.CutLottery, nil)}
	for name, test := range map[string]struct {
		observed Observed
		want     []string
	}{
		"ended": {victim(lottery, warned), []string{"False CameTrue: " + drawn}},
		"requeued": {victim(lottery, func(o *Observed) { checkpointed(o); warned(o) }),
			[]string{"False CameTrue: " + drawn}},
		"shrunk": {victim([]rank.Cut{shrinkTo(16)}, warned), []string{"True CameTrue: " + since + shrunk, safe}},
		"shrunk and still at risk": {victim([]rank.Cut{shrinkTo(16)}, func(o *Observed) {
			warned(o)
			o.Risks = risks(1, "0.5")
		}), []string{"True Reserved: 50 % chance of being ended at 2026-03-01T12:00:00Z to make room for another Run " +
			"(Reservation ns/big00-r0); if it is ended it does not start again, since it declares no checkpoint"}},
		"loses a spare": {victim([]rank.Cut{cut(rqv1.CutDropSpare, func(c *rank.Cut) { c.Spares = []int32{1} })}, warned),
			[]string{"True CameTrue: " + since + "spare dropped for Run ns/other (Reservation ns/other-r0)", safe}},
		"gives back what is on loan": {victim([]rank.Cut{cut(rqv1.CutReturn, func(c *rank.Cut) {
			c.Width = shrinkTo(16).Width
		})}, warned), []string{safe}},
		"was safe": {victim([]rank.Cut{shrinkTo(16)}, func(o *Observed) {
			warned(o)
			said := &o.Run.Status.Conditions[len(o.Run.Status.Conditions)-1]
			said.Status, said.Reason = metav1.ConditionFalse, "Safe"
		}), []string{"True CameTrue: " + shrunk, safe}},
		"was never at risk": {victim(lottery, nil), nil},
		"has completed": {victim(lottery, func(o *Observed) {
			warned(o)
			for _, pod := range o.Pods[:4] {
				pod.Status.Phase = corev1.PodSucceeded
			}
			o.Leases = o.Leases[4:]
		}), []string{safe}},
	} {
		o := test.observed
		if diff := cmp.Diff(test.want, riskSaid(&o)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
