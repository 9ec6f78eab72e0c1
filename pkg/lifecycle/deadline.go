package lifecycle

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// end returns when the maxDuration of a Run that runs is over; false for one that is not bounded.
func (s *state) end() (time.Time, bool) {
	if s.Run.Status.Phase != rqv1.RunRunning || s.Run.Spec.Runtime == nil || s.Run.Spec.Runtime.MaxDuration == nil {
		return time.Time{}, false
	}
	started := meta.FindStatusCondition(s.Run.Status.Conditions, rqv1.ConditionStarted)
	if started == nil || started.Status != metav1.ConditionTrue {
		return time.Time{}, false
	}
	return started.LastTransitionTime.Add(s.Run.Spec.Runtime.MaxDuration.Duration), true
}

// expired reports whether the Run has run for its maxDuration.
func (s *state) expired() bool {
	end, bounded := s.end()
	return bounded && !s.Now.Before(end)
}

// overran says that it has.
func (s *state) overran() string {
	return fmt.Sprintf("ran for its maxDuration of %s", s.Run.Spec.Runtime.MaxDuration.Duration)
}

// untilDue returns when something is due although nothing happens: a gang that has begun to start or a cohort passes its
// deadline, or the Run's maxDuration is over. It returns 0 when nothing is.
func (s *state) untilDue() time.Duration {
	due := s.untilOverdue()
	sooner := func(left time.Duration) {
		if due == 0 || left < due {
			due = left
		}
	}
	if since, begun := s.growingSince(); begun {
		sooner(since.Add(s.GangDeadline).Sub(s.Now) + time.Second)
	}
	if end, bounded := s.end(); bounded {
		sooner(end.Sub(s.Now))
	}
	return due
}
