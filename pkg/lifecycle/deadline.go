package lifecycle

import (
	"fmt"
	"time"
)

// expired reports whether the Run has run for its maxDuration.
func (s *state) expired() bool {
	end, bounded := s.Run.EndsAt()
	return bounded && !s.Now.Before(end)
}

// overran says that it has.
func (s *state) overran() string {
	return fmt.Sprintf("ran for its maxDuration of %s", s.Run.Spec.MaxDuration())
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
	if end, bounded := s.Run.EndsAt(); bounded {
		sooner(end.Sub(s.Now))
	}
	return due
}
