package lifecycle

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
)

// suspends reports whether the Run gives up all that it holds because it is suspended, or has (R39).
func (s *situation) suspends() bool { return s.facts.Run.Suspended() && s.phase == rqv1.RunPending }

// gaveUp reports whether what a Lease holds is given up because the Run is suspended, or was and has been resumed
// since: nothing is opened in between.
func (s *situation) gaveUp(lease *rqv1.Lease) bool {
	run := s.facts.Run
	if lease.Spec.RunRef.UID != run.UID {
		return false
	}
	said := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionSuspended)
	return s.suspends() || said != nil && s.facts.before(lease.HeldSince(), said)
}

// whileSuspended says what a suspended Run waits for.
const whileSuspended = "suspended: it gets no pods and nothing is kept for it until spec.suspend is false " +
	"(kubectl runs resume)"

// setSuspended says whether the Run is suspended; the condition is absent until it is.
func setSuspended(c conditions, s *situation) {
	var suspended *saying
	not := saying{"Resumed", "the Run is planned as any other"}
	switch {
	case s.suspends():
		suspended = &saying{"Suspended", whileSuspended}
	case s.hasEnded():
		not = saying{"Finished", "the Run has ended"}
	}
	c.raise(rqv1.ConditionSuspended, suspended, not)
	if suspended == nil && !s.hasEnded() {
		standStill(c.next, s.facts)
	}
}

// standStill has the place in line of a Run that is resumed be later by as long as it was suspended (R39): who holds
// Runs back gets ahead of nobody by it.
func standStill(next *rqv1.RunStatus, f *facts) {
	from, suspended := f.Run.SuspendedSince()
	if !suspended {
		return
	}
	by := max(0, wholeTime(f.Now).Sub(from).Truncate(time.Second))
	since := f.Run.QueuedSince()
	if next.PlaceSince != nil {
		since = next.PlaceSince.Time
	}
	next.SuspendedSeconds += int64(by / time.Second)
	next.PlaceSince = &metav1.Time{Time: since.Add(by)}
}

// setForecast says when a suspended Run would start. What has not changed keeps its time.
func setForecast(next *rqv1.RunStatus, s *situation) {
	was := next.Forecast
	next.Forecast = nil
	switch o := s.facts.Outlook; {
	case !s.suspends():
	case o == nil:
		next.Forecast = was // it is worked out anew
	default:
		next.Forecast = steadyForecast(was, forecastIn(o))
	}
}

// forecastIn returns what a status says of an outlook.
func forecastIn(o *book.Outlook) *rqv1.RunForecast {
	f := &rqv1.RunForecast{At: wholeTime(o.At), GPUs: int32(o.GPUs), Remarks: o.Remarks, NotAsked: o.NotAsked}
	if o.Promise != nil {
		at := wholeTime(o.Promise.At)
		f.EarliestStart, f.Expected = &at, forecastOf(o.Promise)
	}
	if o.Refusal != nil {
		f.Message, f.Refusal = Shortened(o.Refusal.Message, longestMessage), o.Refusal.Published()
	}
	return f
}

// steadyForecast returns a forecast, or the one before it where that says the same.
func steadyForecast(was, next *rqv1.RunForecast) *rqv1.RunForecast {
	if was == nil {
		return next
	}
	same := *next
	same.At = was.At
	if a, b := was.EarliestStart, next.EarliestStart; a != nil && b != nil && a.Sub(b.Time).Abs() <= slightly {
		same.EarliestStart = a
	}
	if equality.Semantic.DeepEqual(was, &same) {
		return was
	}
	return next
}

// wholeTime returns an instant as the API has it, in whole seconds.
func wholeTime(at time.Time) metav1.Time { return metav1.NewTime(at.Truncate(time.Second)) }

// slightly is by how much a date may move that is not promised before it is written again.
const slightly = time.Minute
