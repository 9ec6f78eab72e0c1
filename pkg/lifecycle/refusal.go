package lifecycle

import rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"

// setRefusal publishes why a Run that waits does not start (R29).
func setRefusal(next *rqv1.RunStatus, s *situation) {
	next.Refusal = nil
	switch {
	case s.phase != rqv1.RunPending:
	case s.facts.Shape != nil:
		next.Refusal = s.facts.Shape.Published()
	case s.facts.Refusal != nil:
		next.Refusal = s.facts.Refusal.Published()
	}
}
