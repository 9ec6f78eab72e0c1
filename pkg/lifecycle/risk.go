package lifecycle

import (
	"fmt"
	"math"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// setReservation says what the Run waits for, or which Reservations of others may cut it (R18).
func setReservation(next *rqv1.RunStatus, s *situation) {
	next.PendingReservation, next.EarliestStart, next.AtRisk, next.Queue = "", nil, nil, nil
	if q := s.facts.Queue; q != nil && s.phase == rqv1.RunPending {
		next.Queue = &rqv1.RunQueue{Ahead: int32(q.Ahead), Of: int32(q.Of), At: metav1.NewTime(q.At.Truncate(time.Second))}
	}
	switch waits := s.facts.Waits(); {
	case s.phase == rqv1.RunPending && waits != nil:
		next.PendingReservation, next.EarliestStart = waits.Name, waits.Spec.EarliestStart.DeepCopy()
	case s.phase == rqv1.RunRunning:
		next.AtRisk = steady(s.facts.Run.Status.AtRisk, s.facts.Risks)
	}
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

// setAtRisk says in a condition whether some activation may cut the Run.
func setAtRisk(c conditions) {
	var risk *saying
	if len(c.next.AtRisk) > 0 {
		first := &c.next.AtRisk[0]
		risk = &saying{"Reserved", fmt.Sprintf("Reservation %s may cut the Run at %s, with a probability of %s",
			first.Reservation, first.At.UTC().Format(time.RFC3339), first.Probability)}
		if more := len(c.next.AtRisk) - 1; more > 0 {
			risk.message += fmt.Sprintf("; %d more Reservations may later", more)
		}
	}
	c.raise(rqv1.ConditionAtRisk, risk, saying{"Safe", "no Reservation needs what the Run holds"})
}
