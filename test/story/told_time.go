package story

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// timeStories are of Runs whose time is over.
func timeStories() []Story {
	return []Story{
		{Name: "never-ready", Alone: "it kills the scheduler", Play: neverReady},
		{Name: "max-duration-ends-a-run", Play: maxDurationEnds},
	}
}

// neverReady has a rank never become ready: it counts as one that has died when its time is over, although the
// scheduler was killed meanwhile. A Run whose ranks are ready in time goes on.
func neverReady(s *Teller) {
	s.Nodes("d0", 4)
	s.Fund("", Envelope("all", 100))
	s.Submit("train", 16, InPods(8), NeverReady("train-1"), ReadyWithin(time.Minute))
	s.Submit("fine", 16, InPods(8), ReadyWithin(time.Minute))
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	s.Says("fine", rqv1.RunRunning, "bound 16 GPUs")
	node := s.On("train-1")
	s.Later(30 * time.Second)
	s.Kill()
	run := s.Says("train", rqv1.RunFailed, "rank 1 on node "+node+" was not ready within its startupDeadline of 1m0s")
	s.Deaths("train", "rank 1 on "+node+": Program")
	s.Same("what shows it", "NotReady", run.Status.Deaths[0].Sign)
	s.Until("its GPU leases close", func() error {
		causes := map[rqv1.EndCause]int{}
		for _, l := range s.World().LeasesOf("train") {
			causes[l.Status.Cause]++
		}
		return differs(map[rqv1.EndCause]int{rqv1.CauseProgram: 1, rqv1.CauseScheduler: 1}, causes)
	})
	s.Same("how many ranks are ready", int32(2), s.Says("fine", rqv1.RunRunning, "bound 16 GPUs").Status.Ready)
}

// maxDurationEnds lets a Run run past its maxDuration: it ends, although it could be requeued, and gives back what it
// held. What its ranks have printed stays, and its spare goes.
func maxDurationEnds(s *Teller) {
	s.Nodes("d0", 3)
	s.Fund("", Envelope("all", 24))
	s.Submit("brief", 16, InPods(8), Spares(8), Lasts(3*time.Second), Checkpointed(time.Second))
	s.Says("brief", rqv1.RunRunning, "bound 16 GPUs")
	run := s.Says("brief", rqv1.RunFailed, "ran for its maxDuration of 3s")
	started := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionStarted)
	finished := meta.FindStatusCondition(run.Status.Conditions, rqv1.ConditionFinished)
	s.Same("why it has finished", rqv1.ReasonTimedOut, finished.Reason)
	if took := finished.LastTransitionTime.Sub(started.LastTransitionTime.Time); took < 3*time.Second {
		s.Errorf("it ran for %s", took)
	}
	s.Ledger("brief", Leases{"Failed": 3})
	s.Until("how its pods have ended", func() error {
		ends := map[string]string{}
		for name, pod := range s.Pods("brief") {
			ends[name] = string(pod.Status.Phase) + " " + pod.Status.Reason
		}
		return differs(map[string]string{"brief-0": "Failed DeadlineExceeded", "brief-1": "Failed DeadlineExceeded"}, ends)
	})
	s.Never(3*time.Second, "it is to stay so", s.Still("brief", rqv1.RunFailed, "ran for its maxDuration of 3s"))

	s.Submit("endless", 8, InPods(8))
	s.Says("endless", rqv1.RunRunning, "bound 8 GPUs")
	s.Edit("endless", Lasts(time.Hour), Checkpointed(time.Minute))
	s.Submit("next", 24, InPods(8))
	s.Says("next", rqv1.RunPending, "short by")
	s.Edit("endless", Lasts(time.Minute), onTimeout(rqv1.TimeoutRequeue))
	s.Says("next", rqv1.RunRunning, "bound 24 GPUs")
	s.waitsAgain("endless")
	s.Edit("endless", Lasts(time.Second), onTimeout(rqv1.TimeoutFail))
	s.Remove("next")
	run = s.Says("endless", rqv1.RunFailed, "ran for its maxDuration of 1s")
	s.Ledger("endless", Leases{"TimedOut": 1, "Failed": 1})
	s.Same("its attempt", int32(1), run.Status.Attempt)
	s.Same("how often it was over", int32(1), run.Status.Timeouts.Count)
}

func onTimeout(do rqv1.TimeoutAction) RunChange {
	return func(r *rqv1.Run) { runtime(r).OnTimeout = do }
}

// waitsAgain asserts that a Run tells that its time is over, and since when it has its place in line.
func (s *Teller) waitsAgain(name string) {
	s.T.Helper()
	is := s.Says(name, rqv1.RunPending).Status
	if is.Timeouts == nil || is.Timeouts.Count != 1 || is.Attempt != 1 || !is.PlaceSince.Equal(&is.Timeouts.Last) {
		s.Fatalf("it is %+v", is)
	}
	s.Told("Run", name, "Pending", "it starts again from its checkpoint, and has its place in line since")
}
