package integration

import (
	"fmt"
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// desiring gives a malleable Run the width that it tends to.
func desiring(gpus int32) func(*rqv1.Run) {
	return func(r *rqv1.Run) { r.Spec.Malleable.DesiredTotalGPUs = &gpus }
}

// TestKillTheSchedulerInBreath kills the scheduler at random moments while a Run grows or shrinks: it comes to the
// width that it desires, and is never hurt.
func TestKillTheSchedulerInBreath(t *testing.T) {
	t.Parallel()
	random := seeded(t)
	s := newSite(t, ownCluster(t, withoutElection, map[string]any{"gangDeadline": "10s", "noticePeriod": "1s"}), 1, 6,
		1000)
	s.startScheduler()
	s.submit("train", 24, inPods(1), inGroups(8), malleable(8, 48, 8), desiring(24))
	s.await("train", rqv1.RunRunning, "bound 24 GPUs")
	torn, desired := 0, int32(24)
	for range full(8, 3) {
		if desired -= 16; desired < 8 {
			desired = 48
		}
		s.runs(fmt.Sprintf("%s train --to %d -n %s", map[bool]string{true: "grow", false: "shrink"}[desired == 48], desired,
			s.namespace))
		_ = within(2*time.Second, func() error { // it may be over sooner than it is seen
			if run, err := s.get("train"); err != nil || run.Status.Width.Pending == "" {
				return fmt.Errorf("the width does not change yet (%v)", err)
			}
			return nil
		})
		if s.killAfter(time.Duration(random.IntN(200)) * time.Millisecond) {
			torn++
		}
		eventually(t, fmt.Sprintf("a width of %d GPUs", desired), func() error {
			run, err := s.get("train")
			if err != nil {
				return err
			}
			if w := run.Status.Width; *w != (rqv1.RunWidth{Min: 8, Max: 48, Desired: desired, Granted: desired,
				Allocated: desired}) {
				return fmt.Errorf("width %+v: %s", w, run.Status.Message)
			}
			return s.asWideAs(run, desired)
		})
		s.settled()
	}
	for reason, leases := range s.closures("train") {
		if reason != "" && reason != rqv1.ClosedShrink {
			t.Errorf("%d Leases are closed as %s", leases, reason)
		}
	}
	t.Logf("%d kills came while the width was changing", torn)
	if torn == 0 {
		t.Error("no kill came while the width was changing: the test has shown nothing")
	}
}
