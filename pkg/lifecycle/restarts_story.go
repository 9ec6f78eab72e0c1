package lifecycle

import (
	"fmt"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/ending"
)

// reasonRestarted says that a rank runs again that died.
const reasonRestarted = "Restarted"

// storyOfRestarting says which rank died first while ranks that died are not back yet; empty when all are.
func storyOfRestarting(s *situation) string {
	r := s.restarts.verdict.Restarts
	if r == nil || r.Ready != nil {
		return ""
	}
	dead := 0
	for index, pod := range s.roster.core() {
		_, again := s.swaps.relief[index]
		if (pod == nil && again || s.facts.fell(pod)) && !s.facts.gaveUp(index) {
			dead++
		}
	}
	first := firstOf(s, r.Incidents)
	if dead == 0 || first == nil {
		return ""
	}
	return fmt.Sprintf("restarting %d of %d ranks (%s): %s", dead, len(s.roster.core()), which(s), ending.Told(first))
}

// which says how many restarts there have been of how many.
func which(s *situation) string {
	r := &s.restarts
	if r.rules.Theirs { // who makes the pods says how often
		return fmt.Sprintf("restart %d", r.verdict.Restarts.Counted)
	}
	return fmt.Sprintf("restart %d of %d", r.verdict.Restarts.Counted, r.rules.Limit)
}

// firstOf returns the first death of an incident, as the status is to tell it; nil when it does not.
func firstOf(s *situation, incident int32) *rqv1.RunDeath {
	for _, deaths := range [][]rqv1.RunDeath{s.restarts.verdict.Deaths, s.facts.Run.Status.Deaths} {
		for i := range deaths {
			if deaths[i].First && deaths[i].Incident == incident {
				return &deaths[i]
			}
		}
	}
	return nil
}

// storyOfRestarts says which rank has been restarted last, and where; empty when none has.
func storyOfRestarts(s *situation) string {
	r := s.restarts.verdict.Restarts
	if r == nil {
		return ""
	}
	restarted, first := 0, firstOf(s, r.Incidents)
	for _, pod := range s.roster.ranks {
		if bound(pod) && !madeAgain(pod).Before(r.Began.Time) {
			restarted++
		}
	}
	if restarted == 0 || first == nil {
		return ""
	}
	what := fmt.Sprintf("rank %d restarted", first.Index)
	if restarted > 1 {
		what = fmt.Sprintf("%d ranks restarted", restarted)
	}
	return fmt.Sprintf("%s (%s) after %s", what, which(s), ending.Told(first))
}
