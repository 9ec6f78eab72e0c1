package lifecycle

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// expired reports whether the Run has run for its maxDuration.
func expired(run *rqv1.Run, now time.Time) bool {
	at, limited := run.EndsAt()
	return limited && !now.Before(at)
}

// failsByTime reports whether the Run has run for its maxDuration and does not ask to wait again then (R22).
func failsByTime(run *rqv1.Run, now time.Time) bool {
	return expired(run, now) && !run.Spec.RequeuesOnTimeout()
}

// timesOut reports whether the Run has run for its maxDuration and waits again. One that is cut at the same time is
// cut: it keeps its place by age.
func (t *footing) timesOut() bool {
	run := t.facts.Run
	return expired(run, t.facts.Now) && run.Spec.RequeuesOnTimeout() && t.cuts.final == nil
}

// timedOut reports whether a Lease is of the attempt whose time was over last: its Run has waited since.
func (f *facts) timedOut(lease *rqv1.Lease) bool {
	if f.Run == nil || lease.Spec.RunRef.UID != f.Run.UID {
		return false
	}
	t := f.Run.Status.Timeouts
	return t != nil && lease.Spec.Attempt == t.Attempt
}

// sentBack returns the condition by which the status of a Run that waits says that it was cut, or its time was over;
// nil when it does not say so any more.
func sentBack(run *rqv1.Run) *metav1.Condition {
	if c := preemption(run); c != nil {
		return c
	}
	c := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionStarted)
	if c == nil || c.Reason != rqv1.ReasonTimedOut || c.Status != metav1.ConditionFalse {
		return nil
	}
	return c
}

// setTimeouts records that the time of the Run is over: it comes after all that wait by now (R22).
func setTimeouts(next *rqv1.RunStatus, s *situation) {
	if !s.timesOut() || s.phase != rqv1.RunPending {
		return
	}
	was, at := s.facts.Run.Status, wholeTime(s.facts.Now)
	count := int32(1)
	if was.Timeouts != nil {
		count += was.Timeouts.Count
	}
	next.Timeouts, next.PlaceSince = &rqv1.RunTimeouts{Count: count, Last: at, Attempt: was.Attempt}, &at
	next.SuspendedSeconds = 0
}

// ranOut says that the Run has run for its maxDuration.
func ranOut(run *rqv1.Run) string {
	return fmt.Sprintf("ran for its maxDuration of %s", run.Spec.MaxDuration())
}

// waitsAgain says what becomes of a Run whose time is over.
func waitsAgain(f *facts) string {
	return fmt.Sprintf("%s; it starts again from its checkpoint, and has its place in line since %s", ranOut(f.Run),
		f.Now.UTC().Format(time.RFC3339))
}
