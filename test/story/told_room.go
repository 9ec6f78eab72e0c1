package story

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// roomStories are of how room is made for Runs whose turn has come, and of those whose turn never comes.
func roomStories() []Story {
	args := soon("3s")
	args["noticePeriod"], args["activationShield"] = "2s", "1h"
	return []Story{
		{Name: "victims-are-told", Args: args, Play: victimsAreTold},
		{Name: "spares-are-dropped-first", Args: args, Play: sparesDroppedFirst},
		{Name: "steps-in-order", Args: args, Play: stepsInOrder},
		{Name: "no-date", Args: args, Play: noDate},
		{Name: "known-dates", Args: args, Play: knownDates},
		{Name: "cut-pod-hangs", Args: args, Play: cutPodHangs,
			Forgets: "that a node has a pod which hangs: it is told as it is written that its Run is planned again"},
	}
}

// Teams gives owners so many GPUs each, which nobody else may use.
func (s *Teller) Teams(gpus int32, paths ...string) {
	s.T.Helper()
	for _, path := range paths {
		s.Fund(path, Envelope("all", gpus, unshared))
	}
}

func unshared(e *rqv1.Envelope) { e.Sharing = rqv1.SharingNone }

// victimsAreTold tells those that are cut, and gives them time; the one with a checkpoint waits and starts again before
// younger Runs, the other fails.
func victimsAreTold(s *Teller) {
	s.Nodes("d", 3)
	for _, team := range []string{"again", "lost", "wanted", "late"} {
		s.Fund(team, Envelope("all", 24))
	}
	s.Submit("again", 16, s.By("again"), InPods(8), Checkpointed(time.Hour), Takes(0, 2*time.Second))
	s.Says("again", rqv1.RunRunning, "bound 16 GPUs")
	s.Submit("lost", 8, s.By("lost"), InPods(8), Takes(5*time.Second, 2*time.Second))
	s.Says("lost", rqv1.RunRunning, "bound 8 GPUs")
	s.Submit("wanted", 24, s.By("wanted"), InPods(8), Lasts(10*time.Second))
	s.notice("again", 2)
	s.notice("lost", 5)
	s.Says("lost", rqv1.RunFailed, "cut by lottery for Run "+s.site.Namespace+"/wanted (Reservation "+
		s.site.Namespace+"/wanted-r0)", "explain --verify wanted-r0 -n "+s.site.Namespace)
	s.Says("again", rqv1.RunPending)
	s.Says("wanted", rqv1.RunRunning, "bound 24 GPUs")
	s.Submit("late", 16, s.By("late"), InPods(8), Checkpointed(time.Hour))
	r := s.Promised("again", rqv1.ReservationPending)
	s.Same("its confidence", rqv1.ConfidenceKnownRelease, r.Status.Forecast.Confidence)
	s.Promised("late", rqv1.ReservationPending)
	s.Says("wanted", rqv1.RunFailed, "maxDuration")
	s.Says("again", rqv1.RunRunning, "bound 16 GPUs")
	s.Same("the younger Run", rqv1.RunPending, s.Run("late").Status.Phase)
	s.Promised("again", rqv1.ReservationReleased)
	s.Ledger("lost", Leases{"RandomPreempt": 1})
	s.Ledger("again", Leases{"RandomPreempt": 2, Open: 2})
}

// notice waits until a pod of a Run is told that it is cut for the Run wanted, and has so many seconds to end.
func (s *Teller) notice(run string, seconds int64) {
	s.T.Helper()
	s.Until("notice to "+run, func() error {
		for _, pod := range s.Pods(run) {
			at := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.DisruptionTarget
			})
			if at < 0 || pod.DeletionTimestamp == nil {
				continue
			}
			told := pod.Status.Conditions[at]
			return differs([]any{corev1.ConditionTrue, string(rqv1.ClosedRandomPreempt), seconds, true},
				[]any{told.Status, told.Reason, *pod.DeletionGracePeriodSeconds,
					strings.Contains(told.Message, s.site.Namespace+"/wanted-r0")})
		}
		return fmt.Errorf("no pod is told")
	})
}

// Cut asserts what a Run's latest Reservation has cut once it is released, in a line for each cut. Nobody is drawn.
func (s *Teller) Cut(run string, want ...string) {
	s.T.Helper()
	r := s.Promised(run, rqv1.ReservationReleased)
	var got []string
	for _, c := range r.Status.Cuts {
		line := fmt.Sprintf("%s %s %d %v", c.Action, c.Run.Name, c.GPUs, c.Spares)
		if c.Width != nil {
			line = fmt.Sprintf("%s %s %d to %d", c.Action, c.Run.Name, c.GPUs, *c.Width)
		}
		got = append(got, line)
	}
	s.Same("what was cut for "+run, want, got)
	s.Same("how many were drawn for it", 0, len(r.Status.Lottery.Draws))
}

// standsBy waits until a Run holds so many GPUs for spares.
func (s *Teller) standsBy(run string, gpus int32) {
	s.T.Helper()
	s.Until("the spares of "+run, func() error {
		held := int32(0)
		for at, n := range s.Held(run) {
			if strings.HasSuffix(at, " Spare") {
				held += n
			}
		}
		return differs(gpus, held)
	})
}

// sparesDroppedFirst drops no more spares than are needed, and cuts others only when they are not enough; dropped
// spares come back.
func sparesDroppedFirst(s *Teller) {
	s.Nodes("d", 6)
	for _, team := range []string{"a", "b"} {
		s.Fund(team, Envelope("all", 48))
	}
	s.Submit("guarded", 16, s.By("a"), InPods(8), InGroups(16), Spares(16))
	s.Says("guarded", rqv1.RunRunning, "bound 16 GPUs")
	s.Submit("flex", 16, s.By("a"), InPods(8), Elastic(8, 16, 8))
	s.Says("flex", rqv1.RunRunning, "bound 16 GPUs")
	before := s.Traces("flex")
	s.Submit("one", 8, s.By("b"), InPods(8))
	s.Says("one", rqv1.RunRunning, "bound 8 GPUs")
	s.Cut("one", "DropSpare guarded 8 [1]")
	s.Same("flex", before, s.Traces("flex"))
	s.ClosedAs("guarded", rqv1.ClosedDropSpare, 1)
	s.Remove("one")
	s.standsBy("guarded", 16)

	s.Submit("three", 24, s.By("b"), InPods(8))
	s.Says("three", rqv1.RunRunning, "bound 24 GPUs")
	s.Cut("three", "DropSpare guarded 16 [0 1]", "Shrink flex 8 to 8")
	s.Says("guarded", rqv1.RunRunning, "bound 16 GPUs")
	s.Says("flex", rqv1.RunRunning, "shrunk to 8 GPUs")
	s.Ledger("flex", Leases{Open: 1, "Shrink": 1})
	s.Remove("three")
	s.standsBy("guarded", 16)
}

// stepsInOrder shrinks by borrowed groups first, whoever has more steps to give, and then the Run with the most steps,
// from its highest group on.
func stepsInOrder(s *Teller) {
	s.Nodes("d", 8)
	s.Teams(32, "own")
	s.Fund("lender", Envelope("all", 16, s.Lends(0, "borrower"), unshared))
	s.Teams(16, "borrower")
	s.Teams(64, "wanted")
	s.Submit("most", 32, s.By("own"), InPods(8), InGroups(8), Elastic(8, 32, 8))
	s.Says("most", rqv1.RunRunning, "bound 32 GPUs")
	s.Submit("debtor", 32, s.By("borrower"), InPods(8), InGroups(8), Elastic(8, 32, 8), s.From("lender"))
	s.Says("debtor", rqv1.RunRunning, "bound 32 GPUs")
	s.Pays("debtor", map[string]int32{"borrower/all own Active": 16, "lender/all sponsor Active": 16})
	before := s.Traces("most")
	s.Submit("first", 16, s.By("wanted"), InPods(8))
	s.Says("first", rqv1.RunRunning, "bound 16 GPUs")
	s.Cut("first", "Shrink debtor 16 to 16")
	s.Says("debtor", rqv1.RunRunning, "shrunk to 16 GPUs")
	s.Pays("debtor", map[string]int32{"borrower/all own Active": 16})
	s.Same("the one with the most steps", before, s.Traces("most"))
	s.Submit("second", 8, s.By("wanted"), InPods(8))
	s.Says("second", rqv1.RunRunning, "bound 8 GPUs")
	s.Cut("second", "Shrink most 8 to 24")
	s.Until("the highest group is to go", func() error {
		return differs([]string{"most-0", "most-1", "most-2"}, sortedKeys(s.Pods("most")))
	})
}

// noDate has Runs that cannot be paid for, or never fit: they are told so, get no date, and nobody is cut for them,
// though their turn would come.
func noDate(s *Teller) {
	s.Nodes("d", 4)
	s.Teams(16, "poor")
	s.Fund("spent", Envelope("all", 32, unshared, func(e *rqv1.Envelope) { e.MaxGPUHours = new(int64(1)) }))
	s.Teams(32, "holder")
	s.Submit("holder", 24, s.By("holder"), InPods(8), Checkpointed(time.Hour))
	s.Says("holder", rqv1.RunRunning, "bound 24 GPUs")
	before := s.Traces("holder")
	s.Submit("poor", 24, s.By("poor"), InPods(8))
	s.Submit("spent", 16, s.By("spent"), InPods(8))
	s.Submit("huge", 40, s.By("holder"), InPods(8))
	s.Submit("tight", 40, s.By("holder"), InPods(8), InGroups(40))
	s.Refused("poor", "InsufficientBudget", "short by 8 of 24 GPUs", "all: 0 of 16 GPUs in use")
	s.Refused("spent", "InsufficientGPUHours", "maxGPUHours: 1.00000 of 1.00000 GPU-hours left")
	s.Refused("huge", "NeverFits")
	s.Refused("tight", "NeverFits")
	s.Never(5*time.Second, "those without a date", func() error {
		if all := s.World().Reservations; len(all) > 0 {
			return fmt.Errorf("there is Reservation %s: %+v", all[0].Name, all[0].Status)
		}
		return differs(before, s.Traces("holder"))
	})
	s.Fund("poor", Envelope("all", 24, unshared))
	s.Says("poor", rqv1.RunRunning, "bound 24 GPUs")
	s.Promised("poor", rqv1.ReservationReleased)
}

// knownDates promises a start for when another Run of the family ends by its maxDuration and gives its money back,
// where there is room. Nobody is cut, though the lead has passed.
func knownDates(s *Teller) {
	s.Nodes("d", 6)
	s.Teams(16, "family")
	s.Teams(48, "other")
	s.Submit("ends", 16, s.By("family"), InPods(8), Lasts(9*time.Second))
	ends, _ := s.Says("ends", rqv1.RunRunning, "bound 16 GPUs").StartedAt()
	s.Submit("stays", 24, s.By("other"), InPods(8))
	s.Says("stays", rqv1.RunRunning, "bound 24 GPUs")
	stays, at := s.Traces("stays"), ends.Add(9*time.Second)
	s.Submit("money", 8, s.By("family"), InPods(8))
	r := s.Promised("money", rqv1.ReservationPending)
	s.Same("the promise", []any{at.UTC(), rqv1.ConfidenceKnownRelease, int32(0)},
		[]any{r.Spec.EarliestStart.UTC(), r.Status.Forecast.Confidence, r.Status.Forecast.DeficitGPUs})
	s.Same("whom it may cut", 0, len(r.Status.ConflictSet))
	if began, _ := s.Says("money", rqv1.RunRunning, "bound 8 GPUs").StartedAt(); began.Before(at) {
		s.Errorf("it started at %s, before %s", began, at)
	}
	s.Same("it was activated", false, s.Promised("money", rqv1.ReservationReleased).Status.ActivatedAt != nil)
	s.Same("the other Run", stays, s.Traces("stays"))
}

// cutPodHangs has a pod that is cut not go: the Run that it is cut for is planned again around it, with what has been
// freed, and the Node and the Reservation tell. Others have the room that it does not take.
func cutPodHangs(s *Teller) {
	s.Nodes("d", 2)
	for _, team := range []string{"a", "b"} {
		s.Fund(team, Envelope("all", 64))
	}
	s.Submit("stays", 16, s.By("a"), InPods(8))
	s.Says("stays", rqv1.RunRunning, "bound 16 GPUs")
	s.Submit("wanted", 16, s.By("b"), InPods(8))
	s.Promised("wanted", rqv1.ReservationPending)
	node, stuck := s.On("stays-0"), s.pod("stays-0")
	s.must(s.Change(stuck, func() {
		metav1.SetMetaDataAnnotation(&stuck.ObjectMeta, TakesAnnotation, "10m")
	}))
	s.Says("stays", rqv1.RunFailed, "cut by lottery")
	s.Says("wanted", rqv1.RunPending, "1 pod of another Run is leaving")
	s.Node("d-2", "d") // wanted has its places, and does not look for others yet
	s.Says("wanted", rqv1.RunRunning, "bound 16 GPUs")
	s.Same("what it has of the node on which a pod hangs", int32(0), s.Held("wanted")[node])
	s.Told("Node", node, "PodStuck", "stays-0 on node "+node)
	s.Promised("wanted", rqv1.ReservationActivating, "stays-0 on node "+node)
	s.DeletePodByForce("stays-0")
	s.Promised("wanted", rqv1.ReservationReleased)
}
