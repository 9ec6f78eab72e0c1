package lifecycle

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Values of a condition's reason that outlast the decision that they come from.
const (
	reasonShrink          = string(rqv1.ClosedShrink)
	reasonGrow            = string(rqv1.ReasonGrow)
	reasonRandomPreempt   = string(rqv1.ClosedRandomPreempt)
	reasonPriorityPreempt = string(rqv1.ClosedPriorityPreempt)
	reasonSwapped         = "Swapped"
)

// saysRunning reports whether the Run's status says that it runs.
func saysRunning(run *rqv1.Run) bool { return run.Status.Phase == rqv1.RunRunning }

// saysPending reports whether the Run's status says that it waits.
func saysPending(run *rqv1.Run) bool {
	return run.Status.Phase == rqv1.RunPending || run.Status.Phase == ""
}

// passing are the conditions that are taken back when what they say of a Run is over.
var passing = []string{rqv1.ConditionOverdraft, rqv1.ConditionAtRisk, rqv1.ConditionRoomKept,
	rqv1.ConditionNodesHeldBack, rqv1.ConditionSaveIgnored, rqv1.ConditionPriorityClassMissing,
	rqv1.ConditionDrainWaits, rqv1.ConditionMaintenanceAhead}

// Done reports whether a Run has ended and its status says all that is to be said: nothing is left to do for it itself,
// until it is edited or its time is over.
func Done(run *rqv1.Run) bool {
	s := &run.Status
	return run.Ended() && run.DeletionTimestamp == nil && s.ObservedGeneration == run.Generation &&
		s.PendingReservation == "" && len(s.AtRisk) == 0 && s.AtRiskTotal == 0 && s.Funding == nil &&
		(s.Width == nil || s.Width.Allocated == 0) &&
		!slices.ContainsFunc(passing, func(c string) bool { return meta.IsStatusConditionTrue(s.Conditions, c) })
}

// grantedIn returns the width that the Run's status grants; 0 when it grants none.
func grantedIn(run *rqv1.Run) int32 {
	if run.Status.Width == nil {
		return 0
	}
	return run.Status.Width.Granted
}

// growingIn returns the width that the Run is growing to by its status; 0 when it is not.
func growingIn(run *rqv1.Run) int32 {
	if run.Status.Width == nil {
		return 0
	}
	return run.Status.Width.Growing
}

// reasonStarted returns the reason of the Run's Started condition while it runs; empty when it does not.
func reasonStarted(run *rqv1.Run) string {
	started := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionStarted)
	if started == nil || !saysRunning(run) {
		return ""
	}
	return started.Reason
}

// ranBefore reports whether the Run runs and had started before an instant. Conditions have whole seconds.
func ranBefore(run *rqv1.Run, at time.Time) bool {
	started, known := run.StartedAt()
	return known && started.Before(at.Truncate(time.Second))
}

// preempted reports whether a Lease is of before a cut that ended the Run, by the Run's own status: the Reservation may
// have been canceled since.
func (f *facts) preempted(lease *rqv1.Lease) bool {
	c := preemption(f.Run)
	return c != nil && lease.Spec.RunRef.UID == f.Run.UID &&
		(c.Type == rqv1.ConditionFinished || lease.Spec.Attempt < f.Run.Status.Attempt)
}

// attemptOf returns how often the Run has been sent back to wait, with this time. Shards wait one by one.
func attemptOf(s *situation) int32 {
	was := s.facts.Run.Status.Attempt
	if saysRunning(s.facts.Run) && s.phase == rqv1.RunPending && !s.facts.opportunistic() {
		return was + 1
	}
	return was
}

// before reports whether something began before what a condition says. Where that is of a time to come the clock has
// been set back since, and what began in the time that has been is new: it would be ended for old until the clock shows
// the same again.
func (f *facts) before(began time.Time, c *metav1.Condition) bool {
	at := c.LastTransitionTime.Time
	return began.Before(at) && (!at.After(f.Now) || began.After(f.Now))
}

// preemption returns the condition by which a Run's status says that a lottery, or a lost rank of a Run of higher
// priority, ended it; nil when it does not, or the Run has started again.
func preemption(run *rqv1.Run) *metav1.Condition {
	says := func(kind string, status metav1.ConditionStatus) *metav1.Condition {
		c := meta.FindStatusCondition(run.Status.Conditions, kind)
		if c == nil || c.Reason != reasonRandomPreempt && c.Reason != reasonPriorityPreempt || c.Status != status {
			return nil
		}
		return c
	}
	return cmp.Or(says(rqv1.ConditionFinished, metav1.ConditionTrue), says(rqv1.ConditionStarted, metav1.ConditionFalse))
}

// boundsOf returns the widths that a Run may have, and the one that it tends to. An opportunistic one takes whatever
// there is.
func boundsOf(spec *rqv1.RunSpec) *rqv1.RunWidth {
	out := &rqv1.RunWidth{Min: spec.Resources.TotalGPUs, Max: spec.Resources.TotalGPUs, Desired: desiredBy(spec)}
	if m := spec.Malleable; m != nil {
		out.Min, out.Max = m.MinTotalGPUs, m.MaxTotalGPUs
	}
	if spec.Opportunistic {
		out.Min = 0
	}
	return out
}

// desiredBy returns the width that a Run tends to: ranks for which nobody is to make pods are none.
func desiredBy(spec *rqv1.RunSpec) int32 {
	if n := unwanted(spec); n > 0 {
		return spec.Desired() - int32(n)**spec.Resources.GPUsPerPod
	}
	return spec.Desired()
}

// unwanted returns for how many of the ranks that a Run has when it is as wide as it tends to be nobody is to make
// pods: others have made the group smaller.
func unwanted(spec *rqv1.RunSpec) int {
	each := spec.Resources.GPUsPerPod
	if each == nil {
		return 0
	}
	ranks := int(spec.Desired() / *each)
	return ranks - spec.Ranks(ranks)
}
