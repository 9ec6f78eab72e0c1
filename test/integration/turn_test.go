package integration

import (
	"testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestTurns has Runs whose turn comes soon, on one cluster with a short lead: where there is a quota, where others pay
// for who is drawn, where other rules than those about GPUs keep a Run from nodes, and where rules about its own pods
// do.
func TestTurns(t *testing.T) {
	t.Parallel()
	arguments := led("3s")
	arguments["noticePeriod"] = "2s"
	c := clusterForMany(t, withoutElection, arguments)
	(&site{cluster: c, t: t}).startScheduler()
	turns := map[string]func(*site){"quota": quotaFirst, "pays": paidByALesserOne}
	for name, rule := range otherRules {
		for what, tell := range underOtherRules {
			turns[name+" "+what] = func(s *site) { tell(s, rule) }
		}
	}
	for what, tell := range whenSpread {
		turns["spread "+what] = tell
	}
	for name, turn := range turns {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, c, 0, 0, 0)
			turn(s)
			s.settled()
		})
	}
}

// endsSlowly has a Run's pods take a while to end, and ask for so much time to.
func endsSlowly(grace int64) func(*rqv1.Run) {
	return func(r *rqv1.Run) {
		template(r).Annotations = map[string]string{"pod-delete.stage.kwok.x-k8s.io/delay": "2s"}
		r.Spec.Template.Spec.TerminationGracePeriodSeconds = &grace
	}
}

// amendAll edits the first envelope of several Budgets.
func (s *site) amendAll(change func(*rqv1.Envelope), paths ...string) {
	s.t.Helper()
	for _, path := range paths {
		s.amend(path, change)
	}
}
