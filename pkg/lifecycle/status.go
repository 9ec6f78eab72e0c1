package lifecycle

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// statusOf returns the status that the Run should have; nil when it has it. It does not count pods while a gang starts
// or waits: none of it has started until all of it has.
func statusOf(s *situation) *rqv1.RunStatus {
	deaths := untoldDeaths(s)
	if len(deaths) == 0 && !s.saysUnmade() && s.facts.Inherits.Left(s.facts.Now) == nil &&
		(fresh(s) || s.facts.Musters && s.phase == rqv1.RunPending && !s.startsAgain()) {
		return nil // what a Run waits for whose pods are being made is known soon
	}
	run := s.facts.Run
	next := run.Status.DeepCopy()
	next.ObservedGeneration, next.Phase, next.Attempt = run.Generation, s.phase, attemptOf(s)
	reason, message := storyOf(s)
	message = s.facts.withUnended(message)
	next.Message = Shortened(message, longestMessage)
	next.Width, next.Funding = boundsOf(&run.Spec), nil
	c := conditions{run: run, now: s.facts.Now, next: next}
	switch {
	case s.facts.opportunistic():
		next.Width.Allocated = allocated(s)
		setReclaimed(c, s)
	case s.phase == rqv1.RunRunning:
		next.Width.Granted, next.Width.Growing = s.width.granted, s.width.growing
		next.Width.Allocated, next.Width.Pending = allocated(s), change(s)
		next.Width.Lacks = lacksToGrow(s)
		next.Funding = fundingOf(s.facts)
	}
	setPodSize(next, s)
	next.Ready = s.ready.count
	setPhase(c, s.phase, reason, message)
	setOverdraft(c)
	setHeldBack(c, s.facts)
	setMaintenance(c, s.facts)
	setDrainWaits(c, s)
	setSaveIgnored(c, s)
	setPriority(c, s)
	setTimeouts(next, s)
	setHeldInVain(next, s)
	setForgone(next, s)
	setRefusal(next, s, reason)
	addDeaths(next, s, deaths)
	setRestarts(next, s)
	setGrace(c, &s.facts.Rules)
	setRoomKept(c, s)
	setSuspended(c, s)
	setForecast(next, s)
	setReservation(next, s)
	setAtRisk(c, s)
	if equality.Semantic.DeepEqual(s.facts.stored, coalesced(s, next)) {
		return nil
	}
	return next
}

// fresh reports whether nothing is known of a new Run beyond what its default status says: most Runs start or are
// refused soon, with one write.
func fresh(s *situation) bool {
	f := s.facts
	if len(f.Run.Status.Conditions) > 0 || s.phase != rqv1.RunPending || s.startsAgain() {
		return false
	}
	_, _, short := f.cutShort(f.Run)
	return f.Shape == nil && f.Refusal == nil && f.Problem == "" && !short && !f.Priority.Missing &&
		!slices.ContainsFunc(s.roster.ranks, f.givesWay)
}

// setPodSize says how many GPUs each pod has, and what stands by in each group (R14), once a Run has pods. Of one that
// is about to start it is said when it runs, which spares a write; of one that has none any more and is to start again,
// the size may change, unless room is kept for it.
func setPodSize(next *rqv1.RunStatus, s *situation) {
	f := s.facts
	waits := s.phase == rqv1.RunPending && f.Refusal != nil && (f.theirs() || !f.Refusal.AboutPods()) &&
		slices.ContainsFunc(f.Pods, active)
	kept := meta.IsStatusConditionTrue(next.Conditions, rqv1.ConditionRoomKept) && !f.RoomLapsed
	switch d := s.width.shape; {
	case (s.phase == rqv1.RunRunning || waits) && f.Shape == nil:
		next.GPUsPerPod, next.SparesPerGroup = int32(d.GPUsPerPod), int32(d.SparesPerGroup*d.GPUsPerPod)
	case s.phase == rqv1.RunPending && len(f.Pods) == 0 && !kept:
		next.GPUsPerPod, next.SparesPerGroup = 0, 0
	}
}

// allocated returns the GPUs of bound active pods that have not ended. Those that are shrunk away hold theirs until
// they are gone (R28).
func allocated(s *situation) int32 {
	gpus := 0
	for _, pod := range slices.Concat(s.roster.ranks, s.roster.beyond) {
		if bound(pod) && unfinished(pod) && pod.Labels[rqv1.LabelRole] != string(rqv1.RoleSpare) {
			gpus += s.width.shape.GPUsPerPod
		}
	}
	return int32(gpus)
}

// lacksToGrow says what keeps a Run that runs from growing to what it desires; empty where nothing does, or it changes.
func lacksToGrow(s *situation) rqv1.WidthLacks {
	if s.width.growing > 0 || s.width.granted >= s.facts.Run.Spec.Desired() {
		return ""
	}
	return s.facts.GrowthLacks
}

// change says which change of width is under way; empty when none is.
func change(s *situation) string {
	leaves := func(pod *corev1.Pod) bool { return bound(pod) && unfinished(pod) }
	switch {
	case s.width.growing > 0:
		return fmt.Sprintf("Grow to %d", s.width.growing)
	case slices.ContainsFunc(s.roster.beyond, leaves):
		return fmt.Sprintf("Shrink to %d", s.width.granted)
	}
	return ""
}
