package integration

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// timeoutWrites are the writes by which a Run waits again whose maxDuration is over, by the name of the step that the
// scheduler comes to before it.
var timeoutWrites = map[string]string{
	"told": `what == "pods/" && request.operation != "CREATE" && request.userInfo.username.contains("jobtree-scheduler") &&
		oldObject.metadata.labels["` + rqv1.LabelRun + `"] == "shifts"`,
	"ended": `what == "leases/status" && object.status.closureReason == "TimedOut"`,
}

// timesOut tells how far a site's Run has not come to a step of waiting again.
func (s *site) timesOut(step string) error {
	w, err := s.look(s.t.Context())
	if err != nil {
		return err
	}
	run, there, open := w.runs["shifts"], 0, 0
	for i := range w.pods {
		if pod := &w.pods[i]; pod.Labels[rqv1.LabelRun] == "shifts" {
			if _, told := rank.GoesBy(pod); !told && !rank.Ended(pod) {
				there++
			}
		}
	}
	for i := range w.leases {
		if w.leases[i].Spec.RunRef.Name == "shifts" && !w.leases[i].Status.Closed {
			open++
		}
	}
	left := map[string]int{"told": 2, "ended": 0}
	if run.Status.Timeouts == nil || there != left[step] || open != 2 {
		return fmt.Errorf("%s has not come to %q: Run %s (%s), %d pods there, %d Leases open", s.namespace, step,
			run.Status.Phase, run.Status.Message, there, open)
	}
	return nil
}

// TestKillBetweenStepsOfATimeout kills the scheduler when the maxDuration of Runs is over that ask to wait again then,
// at each step of that: each is told so once, gives its room to the Run that waits, and starts again after that.
func TestKillBetweenStepsOfATimeout(t *testing.T) {
	t.Parallel()
	c := ownCluster(t, withoutElection, map[string]any{"gangDeadline": "10m"})
	installHolds(t, c, timeoutWrites)
	(&site{cluster: c, t: t}).startScheduler()
	steps := slices.Sorted(maps.Keys(timeoutWrites))
	var sites []*site
	for _, step := range steps {
		s := namedSite(t, c, "timeout-"+step, 1, 2, 100)
		s.submit("shifts", 16, inPods(8), func(r *rqv1.Run) {
			r.Spec.Runtime = &rqv1.RunRuntime{MaxDuration: &metav1.Duration{Duration: time.Minute},
				Checkpoint: &metav1.Duration{Duration: time.Minute}, OnTimeout: rqv1.TimeoutRequeue}
		})
		s.await("shifts", rqv1.RunRunning, "bound 16 GPUs")
		s.submit("next", 16, inPods(8))
		s.await("next", rqv1.RunPending, "short by")
		s.hold(step)
		sites = append(sites, s)
	}
	killHeld(c, steps, sites, func(i int) error { return sites[i].timesOut(steps[i]) })
	for _, s := range sites {
		s.await("next", rqv1.RunRunning, "bound 16 GPUs")
		eventually(t, "how shifts ended", func() error {
			return differs(map[rqv1.ClosureReason]int{rqv1.ClosedTimedOut: 2}, s.closures("shifts"))
		})
		run, err := s.get("shifts")
		if is := run.Status; err != nil || is.Phase != rqv1.RunPending || is.Timeouts == nil || is.Timeouts.Count != 1 {
			t.Errorf("%s: it is %+v (%v)", s.namespace, is, err)
		}
		s.removeRun("next")
		s.await("shifts", rqv1.RunRunning, "bound 16 GPUs")
		s.settled()
	}
}
