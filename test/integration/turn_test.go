package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// TestTurns has Runs whose turn comes soon, on one cluster with a short lead and a long shield.
func TestTurns(t *testing.T) {
	t.Parallel()
	arguments := led("3s")
	arguments["noticePeriod"], arguments["activationShield"] = "2s", "1h"
	c := clusterForMany(t, withoutElection, arguments)
	(&site{cluster: c, t: t}).startScheduler()
	for name, turn := range map[string]func(*site){
		"victims": victims, "spares": sparesFirst, "steps": stepsInOrder, "no date": noDate, "known dates": knownDates,
		"hangs": hangs, "quota": quotaFirst, "pays": paidByALesserOne,
	} {
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

// victims are told and given time; the one with a checkpoint waits and starts again before younger Runs, the other
// fails.
func victims(s *site) {
	s.addNodes("d", 3)
	for _, team := range []string{"again", "lost", "wanted", "late"} {
		s.fund(team, s.envelope("all", 24))
	}
	s.submit("again", 16, s.by("again"), inPods(8), checkpoint(time.Hour), endsSlowly(0))
	s.await("again", rqv1.RunRunning, "bound 16 GPUs")
	s.submit("lost", 8, s.by("lost"), inPods(8), endsSlowly(5))
	s.await("lost", rqv1.RunRunning, "bound 8 GPUs")
	s.submit("wanted", 24, s.by("wanted"), inPods(8), lasts(10*time.Second))
	for run, grace := range map[string]int64{"again": 2, "lost": 5} {
		eventually(s.t, "notice to "+run, func() error { return s.isTold(run, grace) })
	}
	s.await("lost", rqv1.RunFailed, "cut by lottery for Run "+s.namespace+"/wanted (Reservation "+s.namespace+
		"/wanted-r0)")
	s.await("lost", rqv1.RunFailed, "explain --verify wanted-r0 -n "+s.namespace)
	s.await("again", rqv1.RunPending, "")
	s.await("wanted", rqv1.RunRunning, "bound 24 GPUs")
	s.submit("late", 16, s.by("late"), inPods(8), checkpoint(time.Hour))
	r := s.awaitReservation("again", inState(rqv1.ReservationPending))
	same(s.t, "its confidence", rqv1.ConfidenceKnownRelease, r.Status.Forecast.Confidence)
	s.awaitReservation("late", inState(rqv1.ReservationPending))
	s.await("wanted", rqv1.RunFailed, "maxDuration")
	s.await("again", rqv1.RunRunning, "bound 16 GPUs")
	if late, err := s.get("late"); err != nil || late.Status.Phase != rqv1.RunPending {
		s.t.Errorf("the younger Run is %s (%v)", late.Status.Phase, err)
	}
	s.awaitReservation("again", inState(rqv1.ReservationReleased))
	same(s.t, "how lost ended", map[rqv1.ClosureReason]int{rqv1.ClosedRandomPreempt: 1}, s.closures("lost"))
	same(s.t, "how again ended, and runs", map[rqv1.ClosureReason]int{rqv1.ClosedRandomPreempt: 2, "": 2},
		s.closures("again"))
}

// isTold is an error unless a pod of a Run is told that it is cut and has so many seconds to end.
func (s *site) isTold(run string, grace int64) error {
	for _, pod := range s.podsOf(run) {
		at := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.DisruptionTarget
		})
		if at < 0 || pod.DeletionTimestamp == nil {
			continue
		}
		told := pod.Status.Conditions[at]
		return differs([]any{corev1.ConditionTrue, string(rqv1.ClosedRandomPreempt), grace, true},
			[]any{told.Status, told.Reason, *pod.DeletionGracePeriodSeconds,
				strings.Contains(told.Message, s.namespace+"/wanted-r0")})
	}
	return fmt.Errorf("no pod is told")
}

// cutsOf tells what a Run's latest Reservation cut, once it is released, in a line for each cut.
func (s *site) cutsOf(run string) []string {
	s.t.Helper()
	r := s.awaitReservation(run, inState(rqv1.ReservationReleased))
	var out []string
	for _, c := range r.Status.Cuts {
		line := fmt.Sprintf("%s %s %d %v", c.Action, c.Run.Name, c.GPUs, c.Spares)
		if c.Width != nil {
			line = fmt.Sprintf("%s %s %d to %d", c.Action, c.Run.Name, c.GPUs, *c.Width)
		}
		out = append(out, line)
	}
	if len(r.Status.Lottery.Draws) > 0 {
		s.t.Errorf("%s drew %v", r.Name, r.Status.Lottery.Draws)
	}
	return out
}

// sparesFirst drops no more spares than are needed, and others only when they are not enough; dropped spares come back.
func sparesFirst(s *site) {
	s.addNodes("d", 6)
	for _, team := range []string{"a", "b"} {
		s.fund(team, s.envelope("all", 48))
	}
	s.submit("guarded", 16, s.by("a"), inPods(8), inGroups(16), withSpares(16))
	s.await("guarded", rqv1.RunRunning, "bound 16 GPUs")
	s.submit("flex", 16, s.by("a"), inPods(8), malleable(8, 16, 8))
	s.await("flex", rqv1.RunRunning, "bound 16 GPUs")
	before := s.versions("flex")
	s.submit("one", 8, s.by("b"), inPods(8))
	s.await("one", rqv1.RunRunning, "bound 8 GPUs")
	same(s.t, "what one cut", []string{"DropSpare guarded 8 [1]"}, s.cutsOf("one"))
	same(s.t, "flex", before, s.versions("flex"))
	eventually(s.t, "a spare is dropped", func() error { return s.closedAs("guarded", rqv1.ClosedDropSpare, 1) })
	s.removeRun("one")
	eventually(s.t, "the spare is to be back", func() error { return s.standsBy("guarded", 16) })

	s.submit("three", 24, s.by("b"), inPods(8))
	s.await("three", rqv1.RunRunning, "bound 24 GPUs")
	same(s.t, "what three cut", []string{"DropSpare guarded 16 [0 1]", "Shrink flex 8 to 8"}, s.cutsOf("three"))
	s.await("guarded", rqv1.RunRunning, "bound 16 GPUs")
	s.await("flex", rqv1.RunRunning, "shrunk to 8 GPUs")
	same(s.t, "how flex was shrunk", map[rqv1.ClosureReason]int{"": 1, rqv1.ClosedShrink: 1}, s.closures("flex"))
	s.removeRun("three")
	eventually(s.t, "the spares are to be back", func() error { return s.standsBy("guarded", 16) })
}

// standsBy is an error unless a Run holds so many GPUs for spares.
func (s *site) standsBy(run string, gpus int32) error {
	held := int32(0)
	for _, n := range s.nodesByRole(run)[rqv1.RoleSpare] {
		held += n
	}
	if held != gpus {
		return fmt.Errorf("%d GPUs stand by for %s, want %d", held, run, gpus)
	}
	return nil
}

// stepsInOrder shrinks by borrowed groups first, whoever has more steps to give, and then the Run with the most steps,
// from its highest group on.
func stepsInOrder(s *site) {
	s.addNodes("d", 8)
	s.fund("own", s.envelope("all", 32))
	s.fund("lender", s.envelope("all", 16, s.lends(0, "borrower")))
	s.fund("borrower", s.envelope("all", 16))
	s.fund("wanted", s.envelope("all", 64))
	s.amendAll(func(e *rqv1.Envelope) { e.Sharing = rqv1.SharingNone }, "own", "lender", "borrower", "wanted")
	s.submit("most", 32, s.by("own"), inPods(8), inGroups(8), malleable(8, 32, 8))
	s.await("most", rqv1.RunRunning, "bound 32 GPUs")
	s.submit("debtor", 32, s.by("borrower"), inPods(8), inGroups(8), malleable(8, 32, 8), s.from(0, "lender"))
	s.await("debtor", rqv1.RunRunning, "bound 32 GPUs")
	same(s.t, "who pays", map[string]int32{"borrower/all own Active": 16, "lender/all sponsor Active": 16},
		s.payers("debtor"))
	before := s.versions("most")
	s.submit("first", 16, s.by("wanted"), inPods(8))
	s.await("first", rqv1.RunRunning, "bound 16 GPUs")
	same(s.t, "what first cut", []string{"Shrink debtor 16 to 16"}, s.cutsOf("first"))
	s.await("debtor", rqv1.RunRunning, "shrunk to 16 GPUs")
	same(s.t, "who pays still", map[string]int32{"borrower/all own Active": 16}, s.payers("debtor"))
	same(s.t, "the one with the most steps", before, s.versions("most"))
	s.submit("second", 8, s.by("wanted"), inPods(8))
	s.await("second", rqv1.RunRunning, "bound 8 GPUs")
	same(s.t, "what second cut", []string{"Shrink most 8 to 24"}, s.cutsOf("second"))
	eventually(s.t, "the highest group is to go", func() error {
		pods := s.podsOf("most")
		if _, there := pods["most-3"]; there || len(pods) != 3 {
			return fmt.Errorf("pods %v", pods)
		}
		return nil
	})
}

// amendAll edits the first envelope of several Budgets.
func (s *site) amendAll(change func(*rqv1.Envelope), paths ...string) {
	s.t.Helper()
	for _, path := range paths {
		s.amend(path, change)
	}
}

// noDate has Runs that cannot be paid for, or never fit: they are told so, get no date, and nobody is cut for them,
// though their turn would come.
func noDate(s *site) {
	s.addNodes("d", 4)
	s.fund("poor", s.envelope("all", 16))
	s.fund("spent", s.envelope("all", 32, hours(1)))
	s.fund("holder", s.envelope("all", 32))
	s.amendAll(func(e *rqv1.Envelope) { e.Sharing = rqv1.SharingNone }, "poor", "spent", "holder")
	s.submit("holder", 24, s.by("holder"), inPods(8), checkpoint(time.Hour))
	s.await("holder", rqv1.RunRunning, "bound 24 GPUs")
	before := s.versions("holder")
	s.submit("poor", 24, s.by("poor"), inPods(8))
	s.submit("spent", 16, s.by("spent"), inPods(8))
	s.submit("huge", 40, s.by("holder"), inPods(8))
	s.submit("tight", 40, s.by("holder"), inPods(8), inGroups(40))
	s.awaitRefusal("poor", "InsufficientBudget", "short by 8 of 24 GPUs", "all: 0 of 16 GPUs in use")
	s.awaitRefusal("spent", "InsufficientGPUHours", "maxGPUHours: 1.00000 of 1.00000 GPU-hours left")
	s.awaitRefusal("huge", "NeverFits")
	s.awaitRefusal("tight", "NeverFits")
	throughout(s.t, 5*time.Second, "those without a date", func() error {
		all := &rqv1.ReservationList{}
		if err := s.api.List(s.t.Context(), all, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		if len(all.Items) > 0 {
			return fmt.Errorf("there is Reservation %s: %+v", all.Items[0].Name, all.Items[0].Status)
		}
		return differs(before, s.versions("holder"))
	})
	s.amend("poor", func(e *rqv1.Envelope) { e.Concurrency = 24 })
	s.awaitReservation("poor", func(*rqv1.Reservation) error { return nil })
	s.await("poor", rqv1.RunRunning, "bound 24 GPUs")
}

// knownDates promises a start for when another Run of the family ends by its maxDuration and gives its money back,
// where there is room. Nobody is cut, though the lead has passed.
func knownDates(s *site) {
	s.addNodes("d", 6)
	s.fund("family", s.envelope("all", 16))
	s.fund("other", s.envelope("all", 48))
	s.amendAll(func(e *rqv1.Envelope) { e.Sharing = rqv1.SharingNone }, "family", "other")
	s.submit("ends", 16, s.by("family"), inPods(8), lasts(9*time.Second))
	ends := s.await("ends", rqv1.RunRunning, "bound 16 GPUs")
	s.submit("stays", 24, s.by("other"), inPods(8))
	s.await("stays", rqv1.RunRunning, "bound 24 GPUs")
	stays := s.versions("stays")
	s.submit("money", 8, s.by("family"), inPods(8))
	at := startedAt(ends).Add(9 * time.Second)
	r := s.awaitReservation("money", inState(rqv1.ReservationPending))
	same(s.t, "the promise", []any{at.UTC(), rqv1.ConfidenceKnownRelease, int32(0)},
		[]any{r.Spec.EarliestStart.UTC(), r.Status.Forecast.Confidence, r.Status.Forecast.DeficitGPUs})
	if len(r.Status.ConflictSet) > 0 {
		s.t.Errorf("it may cut %v", r.Status.ConflictSet)
	}
	if got := s.await("money", rqv1.RunRunning, "bound 8 GPUs"); startedAt(got).Before(at) {
		s.t.Errorf("it started at %s, before %s", startedAt(got), at)
	}
	if r = s.awaitReservation("money", inState(rqv1.ReservationReleased)); r.Status.ActivatedAt != nil {
		s.t.Errorf("it was activated: %+v", r.Status)
	}
	same(s.t, "the other Run", stays, s.versions("stays"))
}

// startedAt is when a Run started.
func startedAt(run *rqv1.Run) time.Time {
	at := slices.IndexFunc(run.Status.Conditions, func(c metav1.Condition) bool { return c.Type == rqv1.ConditionStarted })
	return run.Status.Conditions[at].LastTransitionTime.Time
}
