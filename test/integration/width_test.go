package integration

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// elastic lets a Run start at a width from least to its total, by steps.
func elastic(least, step int32) func(*rqv1.Run) {
	return func(r *rqv1.Run) {
		r.Spec.Malleable = &rqv1.RunMalleable{MinTotalGPUs: least, MaxTotalGPUs: r.Spec.Resources.TotalGPUs, StepGPUs: step}
	}
}

// asWideAs is an error if a Run has not the pods of a width, all of them bound.
func (s *site) asWideAs(run *rqv1.Run, width int32) error {
	pods := s.podsOf(run.Name)
	bound := int32(0)
	for _, pod := range pods {
		if pod.Spec.NodeName == "" {
			return fmt.Errorf("pod %s is not bound", pod.Name)
		}
		bound += int32(gpus(&pod))
	}
	if bound != width {
		return fmt.Errorf("%d pods of Run %s have %d GPUs, want %d", len(pods), run.Name, bound, width)
	}
	return nil
}

// TestKillTheSchedulerInNarrowStarts kills the scheduler at random moments while a malleable Run starts with less than
// its total: it runs in the end, at one of its widths, with the pods of that width and no others.
func TestKillTheSchedulerInNarrowStarts(t *testing.T) {
	t.Parallel()
	random := seeded(t)
	s := newSite(t, ownCluster(t, withoutElection, map[string]any{"gangDeadline": "5s"}), 1, 6, 1000)
	s.startScheduler()
	torn := 0
	for kill := range full(12, 4) {
		name := fmt.Sprintf("narrow-%d", kill)
		s.submit(name, 64, inPods(1), elastic(16, 8), spread(random))
		if s.killAfter(time.Duration(random.IntN(400)) * time.Millisecond) {
			torn++
		}
		s.await(name, rqv1.RunRunning, "bound 48 GPUs")
		eventually(t, "the pods of its width", func() error {
			run, err := s.get(name)
			if err != nil {
				return err
			}
			if w := run.Status.Width; w.Granted != 48 || w.Allocated != 48 {
				return fmt.Errorf("width %+v", w)
			}
			return s.asWideAs(run, 48)
		})
		s.settled()
		s.removeRun(name)
		s.awaitGone(name)
	}
	t.Logf("%d of 12 kills came while a Run was being started", torn)
	if torn == 0 {
		t.Error("no kill came while a Run was being started: the test has shown nothing")
	}
}

// spread puts a Run's pods into groups of 8 GPUs, or leaves them without.
func spread(random *rand.Rand) func(*rqv1.Run) {
	if random.IntN(2) == 0 {
		return func(*rqv1.Run) {}
	}
	return inGroups(8)
}
