package forecast

import (
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// Activate decides which cuts make a Run start now in some fabric domains, and where it starts then (R19). published is
// the conflict set that was made public, and nonce what was committed to (R21). It returns false if no cuts in the
// conflict set would do. Where nobody is cut, what older Runs are promised whose dates have come stays theirs.
func Activate(s State, ask Ask, domains map[string]bool, published []rqv1.Conflict,
	nonce [32]byte) (resolver.Plan, []plan.Assignment, bool) {
	if !resolver.OnLoan(published) {
		decided, assignments, ok := activate(&s, &ask, s.Now, domains, published, nonce)
		if !ok || resolver.Cuts(decided.Cuts) {
			return decided, assignments, ok
		}
	}
	t := newTimeline(&s, &ask)
	t.seek(t.count(t.dueNow()))
	defer t.rewind()
	return activate(&s, &ask, t.dueNow(), domains, published, nonce)
}

// activate decides as things stand on the fleet and the accounts, where those have started whose dates have come by an
// instant.
func activate(s *State, ask *Ask, at time.Time, domains map[string]bool, published []rqv1.Conflict,
	nonce [32]byte) (resolver.Plan, []plan.Assignment, bool) {
	attempt := s.attempt(ask, at)
	if !attempt.Paid() {
		return resolver.Plan{}, nil, false
	}
	w := feasibility{s.Fleet, attempt.Within(domains)}
	candidates := s.Candidates(domains, s.Now)
	decided, ok := resolver.Resolve(w, candidates, published, nonce)
	if !ok {
		return decided, nil, false
	}
	fork := plan.NewFork(s.Fleet, s.Accounts)
	defer fork.Revert()
	free(fork, resolver.Freed(decided.Cuts, candidates))
	assignments, refusal := w.attempt.Place(s.Fleet)
	return decided, assignments, refusal == nil
}

// Complete says where a Run starts once some GPUs are free that are about to be: those of Runs that have been cut for
// it.
func Complete(s State, ask Ask, freed []resolver.Holding) ([]plan.Assignment, *plan.Refusal) {
	fork := plan.NewFork(s.Fleet, s.Accounts)
	defer fork.Revert()
	free(fork, freed)
	return s.attempt(&ask, s.Now).Place(s.Fleet)
}
