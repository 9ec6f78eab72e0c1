package lifecycle

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// setReservation says what the Run waits for, or which Reservations of others may cut it (R18).
func (s *state) setReservation(next *rqv1.RunStatus) {
	next.PendingReservation, next.EarliestStart, next.AtRisk = "", nil, nil
	switch {
	case s.phase == rqv1.RunPending && s.waitsFor != nil:
		next.PendingReservation, next.EarliestStart = s.waitsFor.Name, s.waitsFor.Spec.EarliestStart.DeepCopy()
	case s.phase == rqv1.RunRunning:
		next.AtRisk = steady(s.Run.Status.AtRisk, s.Risks)
	}
	s.setAtRisk(next)
}

// slight is a change of a probability that is not worth a write: forecasts change as others come and go.
const slight = 0.05

// steady returns risks as they are, or as they were where they have hardly changed.
func steady(was, are []rqv1.RunRisk) []rqv1.RunRisk {
	if len(was) != len(are) {
		return are
	}
	for i := range are {
		old, errOld := strconv.ParseFloat(was[i].Probability, 64)
		now, errNow := strconv.ParseFloat(are[i].Probability, 64)
		moved := are[i].At.Sub(was[i].At.Time).Abs() > time.Second
		if was[i].Reservation != are[i].Reservation || moved || errOld != nil || errNow != nil || math.Abs(now-old) > slight {
			return are
		}
	}
	return was
}

// setAtRisk says in a condition whether some activation may cut the Run. It is absent until one may.
func (s *state) setAtRisk(next *rqv1.RunStatus) {
	condition := metav1.Condition{Type: rqv1.ConditionAtRisk, Status: metav1.ConditionFalse, Reason: "Safe",
		Message: "no Reservation needs what the Run holds", ObservedGeneration: s.Run.Generation}
	if len(next.AtRisk) > 0 {
		first := &next.AtRisk[0]
		condition.Status, condition.Reason = metav1.ConditionTrue, "Reserved"
		condition.Message = fmt.Sprintf("Reservation %s may cut the Run at %s, with a probability of %s", first.Reservation,
			first.At.UTC().Format(time.RFC3339), first.Probability)
		if more := len(next.AtRisk) - 1; more > 0 {
			condition.Message += fmt.Sprintf("; %d more Reservations may later", more)
		}
	} else if meta.FindStatusCondition(next.Conditions, rqv1.ConditionAtRisk) == nil {
		return
	}
	s.setCondition(next, condition)
}

// activating says what the Run waits for when its turn has come.
func (s *state) activating() string {
	text := fmt.Sprintf("its turn has come: %d pods of other Runs are leaving (Reservation %s)", s.Leaving, s.waitsFor.Name)
	if len(s.Stuck) > 0 {
		text += "; planned again around " + stuck(s.Stuck)
	}
	return text
}
