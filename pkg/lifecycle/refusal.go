package lifecycle

import (
	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// setRefusal publishes as data why a Run that waits does not start (R29).
func setRefusal(next *rqv1.RunStatus, s *situation, reason string) {
	was := next.Refusal
	next.Refusal = nil
	if s.phase != rqv1.RunPending || s.suspends() {
		return
	}
	if r := refusalFor(s.facts, reason); r != nil {
		next.Refusal = r.Published()
		if p := s.facts.Promise; p != nil && r == s.facts.Refusal {
			next.Refusal.DeficitGPUs = int32(p.Slice.Deficit)
		}
	} else if was != nil && was.Reason == reason {
		next.Refusal = was // what the Run was refused for last is still told
	}
}

// refusalFor returns the refusal that a reason for waiting names; nil where it names something else.
func refusalFor(f *facts, reason string) *plan.Refusal {
	switch {
	case f.Shape != nil:
		return f.Shape
	case reason == string(plan.NotCreated):
		return &plan.Refusal{Reason: plan.NotCreated, Owner: f.Run.Spec.Owner, WantedGPUs: f.Demand.HeldGPUs(),
			Message: f.Problem}
	case f.Refusal != nil && reason == string(f.Refusal.Reason):
		return f.Refusal
	}
	return nil
}
