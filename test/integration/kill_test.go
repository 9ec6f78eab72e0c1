package integration

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// kills is how often the scheduler is killed in all, and killsARound how often before it is left to come to rest.
var kills = full(32, 8)

const killsARound = 4

// withoutElection has a scheduler decide as soon as it is up, so that it can be killed again soon.
var withoutElection = map[string]any{"leaderElection": map[string]any{"leaderElect": false}}

// TestKillTheScheduler kills the scheduler at random moments while several gangs start, again and again: after each
// round every Run that fits runs, every invariant holds, and nothing has been decided twice.
func TestKillTheScheduler(t *testing.T) {
	t.Parallel()
	random := seeded(t)
	s := newSite(t, ownCluster(t, withoutElection, map[string]any{"gangDeadline": "5s"}), 4, 4, 1000)
	s.startScheduler()
	torn := 0
	for round := range kills / killsARound {
		var gangs []string
		for kill := range killsARound {
			gangs = append(gangs, s.submitGangs(fmt.Sprintf("%d-%d", round, kill), random)...)
			if s.killAfter(time.Duration(random.IntN(600)) * time.Millisecond) {
				torn++
			}
		}
		s.converge(gangs)
		for _, gang := range gangs {
			s.removeRun(gang)
		}
		s.awaitGone(gangs...)
	}
	t.Logf("%d of %d kills came while a gang was being started", torn, kills)
	if torn == 0 {
		t.Error("no kill came while a gang was being started: the test has shown nothing")
	}
}

// startScheduler starts the site's one scheduler, also after a kill, and returns once it decides.
func (s *site) startScheduler() {
	s.t.Helper()
	var err error
	if s.cluster.Scheduler, err = s.StartScheduler(s.t.Context(), "jobtree-scheduler"); err != nil {
		s.t.Fatal(err)
	}
}

// submitGangs submits two gangs of 2 to 24 pods. Those of a round together may exceed the 128 GPUs.
func (s *site) submitGangs(suffix string, random *rand.Rand) []string {
	s.t.Helper()
	var gangs []string
	for i := range 2 {
		name := fmt.Sprintf("gang-%s-%d", suffix, i)
		size, pods := []int32{1, 2, 4}[random.IntN(3)], 2*(1+random.Int32N(12))
		change := func(*rqv1.Run) {}
		if total := pods * size; total <= 32 && random.IntN(2) == 0 {
			change = inGroups(total / 2)
		}
		s.submit(name, pods*size, inPods(size), change)
		gangs = append(gangs, name)
	}
	return gangs
}

// killAfter kills the scheduler after a delay and starts it again. It tells whether that left a gang partly started, or
// between two widths.
func (s *site) killAfter(delay time.Duration) bool {
	s.t.Helper()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	<-timer.C
	if err := s.cluster.Scheduler.Kill(); err != nil {
		s.t.Fatal(err)
	}
	w, err := s.look(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	s.startScheduler()
	return w.torn()
}

// torn tells whether some Run has some of its pods or Leases and lacks others, or changes its width.
func (w *world) torn() bool {
	pods, bound, leased := map[string]int32{}, map[string]int32{}, map[string]int32{}
	for _, pod := range w.pods {
		run := pod.Labels[rqv1.LabelRun]
		pods[run] += int32(gpus(&pod))
		if pod.Spec.NodeName != "" {
			bound[run] += int32(gpus(&pod))
		}
	}
	for _, lease := range w.leases {
		if !lease.Status.Closed {
			leased[lease.Spec.RunRef.Name] += lease.Spec.Slice.Nodes[0].GPUs
		}
	}
	for name, run := range w.runs {
		if run.Status.Width != nil && run.Status.Width.Pending != "" {
			return true
		}
		total, _ := widthOf(&run)
		for _, part := range []int32{pods[name], bound[name], leased[name]} {
			if part > 0 && part < total {
				return true
			}
		}
	}
	return false
}

// converge waits until every invariant holds and every gang either runs or cannot for want of GPUs that it really
// lacks.
func (s *site) converge(gangs []string) {
	s.t.Helper()
	eventually(s.t, "convergence", func() error {
		w, err := s.look(s.t.Context())
		if err != nil {
			return err
		}
		free := int32(len(w.nodes) * 8)
		var waiting []rqv1.Run
		for _, gang := range gangs {
			run := w.runs[gang]
			switch {
			case run.Status.Phase == rqv1.RunRunning:
				free -= run.Spec.Resources.TotalGPUs
			case is(&run, rqv1.RunPending, "short by") == nil:
				waiting = append(waiting, run)
			default:
				return is(&run, rqv1.RunRunning, "")
			}
		}
		for _, run := range waiting {
			if run.Spec.Locality == nil && *run.Spec.Resources.GPUsPerPod == 1 && run.Spec.Resources.TotalGPUs <= free {
				return fmt.Errorf("Run %s of %d GPUs waits while %d are free", run.Name, run.Spec.Resources.TotalGPUs, free)
			}
		}
		return s.verdict(s.t.Context())
	})
}
