package lifecycle

import (
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
	"github.com/davidlangworthy/jobtree/pkg/risk"
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
		if is < 0 || moved(old, &all[is]) || math.Abs(odds(&all[is])-odds(old)) > slight ||
			!slices.EqualFunc(old.Cuts, all[is].Cuts, sameCut) {
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

// sameCut reports whether two entries of a risk are about the same cut and hardly differ in how likely it is.
func sameCut(x, y rqv1.RiskCut) bool {
	by := resolver.Likelihood(x.Probability) - resolver.Likelihood(y.Probability)
	x.Probability = y.Probability
	return x == y && math.Abs(by) <= slight
}

// reasonCameTrue is the reason of the condition AtRisk once a Run is cut that was at risk.
const reasonCameTrue = "CameTrue"

// setAtRisk says in a condition whether some activation may cut the Run. Whoever is being cut is not safe: what was
// announced has come true, and that stands for a Run that has ended by it.
func setAtRisk(c conditions, s *situation) {
	was := meta.FindStatusCondition(c.next.Conditions, rqv1.ConditionAtRisk)
	status, why := metav1.ConditionFalse, saying{"Safe", "no Reservation needs the Run's GPUs"}
	cut := s.cuts.underWay()
	switch {
	case cut != nil && s.phase == rqv1.RunRunning:
		status = metav1.ConditionTrue
	case preemption(&rqv1.Run{Status: *c.next}) == nil: // it has ended otherwise
		cut = nil
	}
	switch {
	case len(c.next.AtRisk) > 0:
		status, why = metav1.ConditionTrue, saying{"Reserved", announced(c.run, c.next)}
	case was == nil:
		return
	case was.Reason == reasonCameTrue && (cut != nil || was.Status == metav1.ConditionFalse):
		why = saying{was.Reason, was.Message}
	case cut != nil:
		why = saying{reasonCameTrue, purpose(cut)}
		if was.Status == metav1.ConditionTrue {
			why.message = fmt.Sprintf("the risk announced at %s has come true: %s",
				was.LastTransitionTime.UTC().Format(time.RFC3339), why.message)
		}
	}
	c.put(rqv1.ConditionAtRisk, status, why)
}

// announced says what the first of the Run's risks is, and what would become of the Run.
func announced(run *rqv1.Run, next *rqv1.RunStatus) string {
	first := &next.AtRisk[0]
	text := fmt.Sprintf("%s at %s to make room for another Run (Reservation %s)", risk.Words(first),
		first.At.UTC().Format(time.RFC3339), first.Reservation)
	if after := risk.AfterEnd(run, first); after != "" {
		text += "; " + after
	}
	if more := next.AtRiskTotal - 1; more > 0 {
		text += fmt.Sprintf("; %d more Reservations may cut the Run later", more)
	}
	return text
}
