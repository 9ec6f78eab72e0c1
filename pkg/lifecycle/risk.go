package lifecycle

import (
	"fmt"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// setReservation says what the Run waits for, or which Reservations of others may cut it (R18).
func setReservation(next *rqv1.RunStatus, s *situation) {
	next.PendingReservation, next.EarliestStart, next.Queue = "", nil, nil
	next.AtRisk, next.AtRiskTotal = nil, 0
	if s.suspends() {
		return
	}
	if q := s.facts.InLine; q != nil && s.phase == rqv1.RunPending {
		next.Queue = &rqv1.RunQueue{Ahead: int32(q.Ahead), Of: int32(q.Of), At: metav1.NewTime(q.At.Truncate(time.Second))}
	}
	switch waits := s.facts.Waits(); {
	case s.phase == rqv1.RunPending && waits != nil:
		next.PendingReservation, next.EarliestStart = waits.Name, waits.Spec.EarliestStart.DeepCopy()
	case s.phase == rqv1.RunRunning:
		next.AtRisk, next.AtRiskTotal = steady(&s.facts.Run.Status, s.facts.Risks), int32(len(s.facts.Risks))
	}
}

// slight is a change of a probability that is not worth a write: forecasts change as others come and go.
const slight = 0.05

// steady returns the first of all risks, or those that a status lists where these have hardly changed.
func steady(was *rqv1.RunStatus, all []rqv1.RunRisk) []rqv1.RunRisk {
	first := all[:min(len(all), rqv1.MostRisks)]
	if int(was.AtRiskTotal) != len(all) || len(was.AtRisk) != len(first) {
		return first
	}
	at := func(among []rqv1.RunRisk, r *rqv1.RunRisk) int {
		return slices.IndexFunc(among, func(o rqv1.RunRisk) bool { return o.Reservation == r.Reservation })
	}
	for i := range was.AtRisk {
		old := &was.AtRisk[i]
		is := at(all, old)
		if is < 0 || moved(old, &all[is]) || math.Abs(odds(&all[is])-odds(old)) > slight {
			return first
		}
		for j := range first {
			r := &first[j]
			ahead := is >= len(first) && at(was.AtRisk, r) < 0 // it has taken the place of the other
			if ahead && (r.At.Before(&old.At) && moved(old, r) || odds(r)-odds(old) > slight) {
				return first
			}
		}
	}
	return was.AtRisk
}

// moved reports whether two dates differ by more than the API shows.
func moved(x, y *rqv1.RunRisk) bool { return x.At.Sub(y.At.Time).Abs() > time.Second }

func odds(r *rqv1.RunRisk) float64 { return resolver.Likelihood(r.Probability) }

// setAtRisk says in a condition whether some activation may cut the Run.
func setAtRisk(c conditions) {
	var risk *saying
	if len(c.next.AtRisk) > 0 {
		first := &c.next.AtRisk[0]
		risk = &saying{"Reserved", fmt.Sprintf("Reservation %s may cut the Run at %s, with a probability of %s",
			first.Reservation, first.At.UTC().Format(time.RFC3339), first.Probability)}
		if more := c.next.AtRiskTotal - 1; more > 0 {
			risk.message += fmt.Sprintf("; %d more Reservations may later", more)
		}
	}
	c.raise(rqv1.ConditionAtRisk, risk, saying{"Safe", "no Reservation needs what the Run holds"})
}
