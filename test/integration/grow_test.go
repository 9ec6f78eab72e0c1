package integration

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// desiring gives a malleable Run the width that it tends to.
func desiring(gpus int32) func(*rqv1.Run) {
	return func(r *rqv1.Run) { r.Spec.Malleable.DesiredTotalGPUs = &gpus }
}

// widths records what the Runs of the site say of their widths from now on, without repeating themselves, until the
// function that it returns is called.
func (s *site) widths() func() []string {
	s.t.Helper()
	watch, err := s.api.Watch(s.t.Context(), &rqv1.RunList{}, client.InNamespace(s.namespace))
	if err != nil {
		s.t.Fatal(err)
	}
	told := make(chan []string)
	go func() {
		var said []string
		for event := range watch.ResultChan() {
			run, ok := event.Object.(*rqv1.Run)
			if !ok || run.Status.Phase != rqv1.RunRunning {
				continue
			}
			line := run.Status.Message
			if pending := run.Status.Width.Pending; pending != "" {
				line += ", " + pending
			}
			if len(said) == 0 || said[len(said)-1] != line {
				said = append(said, line)
			}
		}
		told <- said
	}()
	return func() []string {
		watch.Stop()
		return <-told
	}
}

// TestGrowAndShrink is worked example 4: a Run of 96 GPUs grows to 160 by two cohorts, and gives 64 GPUs back when it
// is told to.
func TestGrowAndShrink(t *testing.T) {
	t.Parallel()
	s := newSite(t, liveCluster(t), 1, 20, 160)
	said := s.widths()
	s.submit("train", 96, inGroups(32), malleable(96, 160, 32))
	s.await("train", rqv1.RunRunning, "grew to 160 GPUs")
	eventually(t, "the pods of 160 GPUs", func() error {
		run, err := s.get("train")
		if err != nil {
			return err
		}
		if w := run.Status.Width; *w != (rqv1.RunWidth{Min: 96, Max: 160, Desired: 160, Granted: 160, Allocated: 160}) {
			return fmt.Errorf("width %+v", w)
		}
		return s.asWideAs(run, 160)
	})
	s.settled()
	before := map[int32][]rqv1.LeaseReason{}
	for _, lease := range s.leasesOf("train") {
		before[lease.Spec.Cohort] = append(before[lease.Spec.Cohort], lease.Spec.Reason)
	}
	same(t, "the Leases by cohort", map[int32][]rqv1.LeaseReason{
		0: slices.Repeat([]rqv1.LeaseReason{rqv1.ReasonStart}, 12),
		1: slices.Repeat([]rqv1.LeaseReason{rqv1.ReasonGrow}, 4), 2: slices.Repeat([]rqv1.LeaseReason{rqv1.ReasonGrow}, 4),
	}, before)

	s.runs("shrink train --to 96 -n " + s.namespace)
	s.await("train", rqv1.RunRunning, "shrunk to 96 GPUs")
	eventually(t, "the pods of 96 GPUs", func() error {
		run, err := s.get("train")
		if err != nil {
			return err
		}
		if w := run.Status.Width; *w != (rqv1.RunWidth{Min: 96, Max: 160, Desired: 96, Granted: 96, Allocated: 96}) {
			return fmt.Errorf("width %+v", w)
		}
		return s.asWideAs(run, 96)
	})
	eventually(t, "how it shrank", func() error { return s.closedAs("train", rqv1.ClosedShrink, 8) })
	s.settled()
	same(t, "what it said", []string{
		"bound 96 GPUs", "bound 96 GPUs, Grow to 128", "grew to 128 GPUs", "grew to 128 GPUs, Grow to 160",
		"grew to 160 GPUs",
		"shrunk to 96 GPUs, Shrink to 96", "shrunk to 96 GPUs",
	}, said())
}

// TestGrowthYieldsToAReservation has a Run desire room that another is promised: it does not take it, gives up a step
// for the other, and does not take that back.
func TestGrowthYieldsToAReservation(t *testing.T) {
	t.Parallel()
	s := newSite(t, ownCluster(t, withoutElection, led("5s")), 1, 4, 0)
	s.startScheduler()
	s.fund("a", s.envelope("all", 64))
	s.fund("b", s.envelope("all", 64))
	s.submit("train", 16, s.by("a"), inGroups(8), malleable(8, 32, 8), desiring(16))
	s.await("train", rqv1.RunRunning, "bound 16 GPUs")
	s.submit("big", 24, s.by("b"))
	s.awaitReservation("big", inState(rqv1.ReservationPending))
	said := s.widths()
	s.runs("grow train --to 32 -n " + s.namespace)
	s.await("big", rqv1.RunRunning, "bound 24 GPUs")
	s.await("train", rqv1.RunRunning, "shrunk to 8 GPUs")
	throughout(t, 3*time.Second, "what is promised is not taken back", func() error {
		run, err := s.get("train")
		if err == nil && run.Status.Width.Growing > 0 {
			err = fmt.Errorf("width %+v", run.Status.Width)
		}
		return err
	})
	s.settled()
	for _, line := range said() {
		if line == "grew to 24 GPUs" || line == "bound 16 GPUs, Grow to 24" {
			t.Errorf("it said: %s", line)
		}
	}
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
