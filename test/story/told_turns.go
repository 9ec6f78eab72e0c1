package story

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// turnStories are of Runs that wait until it is their turn, when room is made for them at others' cost.
func turnStories() []Story {
	return []Story{
		{Name: "only-runs-that-borrow-are-drawn", Args: with(soon("4s"), "lottery", "Borrowed"), Play: onlyBorrowersDrawn},
		{Name: "window-opens", Args: soon("1h"), Play: windowOpens},
		{Name: "window-opens-onto-a-full-fleet", Args: with(soon("1s"), "activationShield", "1h"),
			Play: windowOntoAFullFleet},
		{Name: "window-of-4096", Args: soon("1s"), Long: manyPods, Play: func(s *Teller) { windowOf4096(s, 5, 0) }},
		{Name: "window-of-4096-by-shrinking", Args: soon("1s"), Long: manyPods,
			Play: func(s *Teller) { windowOf4096(s, 0, 4200, Elastic(160, 1000, 168)) }},
		{Name: "window-of-4096-by-shrinking-and-lottery", Args: soon("1s"), Long: manyPods,
			Play: func(s *Teller) { windowOf4096(s, 3, 1200, Elastic(400, 1000, 200)) }},
		{Name: "a-step-elsewhere-spares-a-run", Args: soon("4s"), Play: stepElsewhere},
		{Name: "steps-elsewhere-spare-one-of-two", Args: soon("4s"), Play: stepsElsewhere},
		{Name: "events-count-up", Play: eventsCountUp},
		{Name: "pods-that-leave-are-awaited", Args: soon("3s"), Play: leavingAwaited},
	}
}

// onlyBorrowersDrawn has operators limit the lottery: a Run that its own owner pays for is neither drawn nor at risk,
// and one that its family pays for is. What is announced comes true, and the Run is not told between that it is safe.
func onlyBorrowersDrawn(s *Teller) {
	s.Nodes("d0", 2)
	for _, path := range []string{"own", "family", "next"} {
		s.Fund(path, Envelope("all", 8))
	}
	s.Submit("own", 8, s.By("own"))
	s.Says("own", rqv1.RunRunning, "bound 8 GPUs")
	s.Submit("lent", 8, s.By("family:team"))
	s.Says("lent", rqv1.RunRunning, "bound 8 GPUs")
	s.Submit("next", 8, s.By("next"))
	r := s.Promised("next", rqv1.ReservationPending)
	s.Same("who may be cut", []string{"lent Lottery 8 1"}, Conflicts(r))
	s.AtRisk("lent", r.Name, "1")
	s.Says("next", rqv1.RunRunning, "bound 8 GPUs")
	s.Says("lent", rqv1.RunFailed, "cut by lottery")
	s.Told("Run", "lent", "CameTrue", "")
	s.Same("how often it was told that it is safe", 0, s.Count("Run", "lent", "no Reservation needs"))
	if c := meta.FindStatusCondition(s.Run("own").Status.Conditions, rqv1.ConditionAtRisk); c != nil {
		s.Errorf("the Run that its owner pays for says %+v", c)
	}
	s.Says("own", rqv1.RunRunning, "bound 8 GPUs")
}

// windowOpens is worked example 6: a Run whose Budget opens later is promised to start then, others use the room until
// then, and it starts.
func windowOpens(s *Teller) {
	s.Nodes("d0", 4)
	s.Nodes("d1", 4)
	opens := s.In(12 * time.Second)
	s.Fund("rai", Envelope("night", 5000, func(e *rqv1.Envelope) { e.Start = opens }))
	s.Fund("day", Envelope("all", 64))
	s.Submit("big", 64, s.By("rai"))
	r := s.Promised("big", rqv1.ReservationPending)
	s.Same("confidence", rqv1.ConfidenceWindowAligned, r.Status.Forecast.Confidence)
	s.Same("earliest start", opens.Add(time.Second).UTC(), r.Spec.EarliestStart.UTC())
	s.Same("on how many nodes, of both domains", 8, len(r.Spec.IntendedSlice.Nodes))
	if left := r.Status.CountdownSeconds; left == nil || *left > 13 || *left < 5 {
		s.Errorf("countdown %v", left)
	}
	s.Submit("filler", 32, s.By("day"), Lasts(4*time.Second))
	filler := s.Says("filler", rqv1.RunRunning, "bound 32 GPUs")
	s.Same("what threatens a Run that ends in time", 0, len(filler.Status.AtRisk))
	run := s.Says("big", rqv1.RunRunning, "bound 64 GPUs")
	if at, _ := run.StartedAt(); at.Before(opens.Time) {
		s.Errorf("it started at %s, before its window opened", at)
	}
	s.Promised("big", rqv1.ReservationReleased)
}

// windowOntoAFullFleet has a window open while others, who have no end, use all there is: the date that the Run had
// before says who may be cut for it, and they are when it comes.
func windowOntoAFullFleet(s *Teller) {
	s.Nodes("d0", 4)
	opens := s.In(10 * time.Second)
	s.Fund("rai", Envelope("night", 5000, func(e *rqv1.Envelope) { e.Start = opens }))
	s.Fund("day", Envelope("all", 64))
	s.Submit("filler", 32, s.By("day"), Checkpointed(time.Second))
	s.Says("filler", rqv1.RunRunning, "bound 32 GPUs")
	s.Submit("big", 32, s.By("rai"))
	ontoAFullFleet(s, opens, 32)
	s.Says("filler", rqv1.RunPending)
	s.Ledger("filler", Leases{"RandomPreempt": 4})
}

// manyPods is why stories of thousands of pods are Long.
const manyPods = "pods for thousands of GPUs are to run before its window opens"

// windowOf4096 is worked example 6 at its size, on 625 nodes of which five Runs use all when the window opens: so many
// of them are drawn, and the others give up so many GPUs and run on.
func windowOf4096(s *Teller, drawn int, shrunk int32, fillers ...RunChange) {
	for d := range 25 {
		s.Nodes(fmt.Sprintf("d%02d", d), 25)
	}
	opens := s.In(20 * time.Second)
	s.Fund("rai", Envelope("night", 5000, func(e *rqv1.Envelope) { e.Start = opens }))
	s.Fund("day", Envelope("all", 5000))
	fillers = append(fillers, s.By("day"), Checkpointed(time.Second))
	for i := range 5 {
		s.Submit(fmt.Sprintf("filler%d", i), 1000, fillers...)
		s.Says(fmt.Sprintf("filler%d", i), rqv1.RunRunning, "bound 1000 GPUs")
	}
	s.Submit("big", 4096, s.By("rai"))
	s.cutsNoMore(ontoAFullFleet(s, opens, 4096), drawn, shrunk)
	s.Ledger("big", Leases{Open: 512})
}

// cutsNoMore asserts how many Runs an activation ended, and how many GPUs others gave up who run on.
func (s *Teller) cutsNoMore(r *rqv1.Reservation, drawn int, shrunk int32) {
	s.T.Helper()
	ended, _ := Drawn(r)
	s.Same("how many are drawn", drawn, len(ended))
	for _, cut := range r.Status.Cuts {
		if cut.Action == rqv1.CutShrink {
			shrunk -= cut.GPUs
		}
	}
	s.Same("GPUs that are not given up by shrinking", int32(0), shrunk)
	s.Same("what is wrong with the record", 0, len(resolver.Verify(r)))
}

// stepElsewhere has a Run that can become narrower use two domains, and another ask for one of them: that is the one in
// which the step lies, and nobody is drawn. When the other has ended the Run is as wide again as it desires.
func stepElsewhere(s *Teller) {
	s.Nodes("d0", 2)
	s.Nodes("d1", 2)
	s.Fund("", Envelope("all", 100))
	s.Submit("filler", 32, InPods(8), Elastic(16, 32, 16))
	s.Says("filler", rqv1.RunRunning, "bound 32 GPUs")
	top := s.On("filler-3")
	s.Submit("next", 16, InPods(8))
	r := s.Promised("next", rqv1.ReservationPending, "cluster short by 16 GPUs in scope")
	s.Same("conflict set", []string{"filler Shrink 16 1"}, Conflicts(r))
	s.Same("remedies", []string{"Shrink elastic runs by step size (16 GPUs)"}, r.Status.Forecast.Remedies)
	s.Says("next", rqv1.RunRunning, "bound 16 GPUs")
	s.Same("the domain of the step", top[:2], s.On("next-0")[:2])
	s.Says("filler", rqv1.RunRunning, "shrunk to 16 GPUs")
	s.cutsNoMore(s.Promised("next", rqv1.ReservationReleased), 0, 16)
	s.Finish("next")
	s.Says("filler", rqv1.RunRunning, "grew to 32 GPUs")
}

// stepsElsewhere has two Runs that can become narrower use all there is, and another ask for more than their steps: one
// is drawn, and the other becomes narrower, whichever domains that leaves.
func stepsElsewhere(s *Teller) {
	for d := range 4 {
		s.Nodes(fmt.Sprint("d", d), 2)
	}
	s.Fund("", Envelope("all", 200))
	for i := range 2 {
		s.Submit(fmt.Sprint("filler", i), 32, InPods(8), Elastic(16, 32, 16))
		s.Says(fmt.Sprint("filler", i), rqv1.RunRunning, "bound 32 GPUs")
	}
	s.Submit("next", 48, InPods(8))
	r := s.Promised("next", rqv1.ReservationPending)
	s.Same("conflict set", []string{"filler0 Lottery 16 0.5", "filler0 Shrink 16 0.5", "filler1 Lottery 16 0.5",
		"filler1 Shrink 16 0.5"}, Conflicts(r))
	s.Says("next", rqv1.RunRunning, "bound 48 GPUs")
	s.cutsNoMore(s.Promised("next", rqv1.ReservationReleased), 1, 16)
}

// ontoAFullFleet has a Run wait for its window, told who may be cut then, and start when it has opened, at others'
// cost.
func ontoAFullFleet(s *Teller, opens *metav1.Time, gpus int32) *rqv1.Reservation {
	s.T.Helper()
	r := s.Promised("big", rqv1.ReservationPending, "its window opens at")
	s.Same("confidence", rqv1.ConfidenceWindowAligned, r.Status.Forecast.Confidence)
	s.Same("earliest start", opens.Add(time.Second).UTC(), r.Spec.EarliestStart.UTC())
	s.Same("what is missing then", gpus, r.Status.Forecast.DeficitGPUs)
	if len(r.Status.ConflictSet) == 0 {
		s.Errorf("those who may be cut: %v", r.Status.ConflictSet)
	}
	run := s.Says("big", rqv1.RunRunning, fmt.Sprintf("bound %d GPUs", gpus))
	date := r.Spec.EarliestStart.Time
	r = s.Promised("big", rqv1.ReservationReleased)
	s.Same("confidence in the end", rqv1.ConfidenceWindowAligned, r.Status.Forecast.Confidence)
	if at := r.Status.ActivatedAt; at == nil || at.Time.Before(date) {
		s.Errorf("others are told to go at %v, before the date that they were told, %s", at, date)
	}
	if at, _ := run.StartedAt(); at.Before(date) || at.After(date.Add(20*time.Second)) {
		s.Errorf("it started at %s, and the others had a second from %s on", at, date)
	}
	return r
}

// eventsCountUp has a Run of 16 GPUs wait for one of two things in turn: each of them is an event, and the second time
// is counted in it. That it runs then is no event.
func eventsCountUp(s *Teller) {
	s.Nodes("d0", 2)
	s.Fund("", Envelope("all", 8))
	s.Submit("waits", 16, InPods(4))
	for _, gpus := range []int32{8, 4, 8, 4} {
		s.Fund("", Envelope("all", gpus))
		s.Says("waits", rqv1.RunPending, fmt.Sprintf("short by %d", 16-gpus))
	}
	s.Until("the events of the Run", func() error {
		return differs([]int{2, 2}, []int{s.Count("Run", "waits", "short by 8"), s.Count("Run", "waits", "short by 12")})
	})
	s.Fund("", Envelope("all", 16))
	s.Says("waits", rqv1.RunRunning, "bound 16 GPUs")
	s.Sound()
	s.Same("how often it is told that the Run has started", 0, s.Count("Run", "waits", "bound"))
}

// leavingAwaited has a Run's turn come while the pods of one that was deleted are in their grace period: nobody is cut
// for it.
func leavingAwaited(s *Teller) {
	s.Nodes("d", 16)
	for _, team := range []string{"a", "b", "c"} {
		s.Fund(team, Envelope("all", 64))
	}
	s.Submit("goes", 64, s.By("a"), InPods(8), Takes(30*time.Second, 9*time.Second))
	s.Says("goes", rqv1.RunRunning, "bound 64 GPUs")
	s.Submit("stays", 64, s.By("b"), InPods(8))
	s.Says("stays", rqv1.RunRunning, "bound 64 GPUs")
	before := s.Pods("stays")
	s.Submit("wanted", 64, s.By("c"), InPods(8))
	s.Remove("goes") // wanted may have others cut in 3 s
	s.Says("wanted", rqv1.RunRunning, "bound 64 GPUs")
	r := s.Promised("wanted", rqv1.ReservationReleased)
	s.Same("others were cut", true, r.Status.ActivatedAt == nil)
	s.Remade("stays", before)
	s.Ledger("stays", Leases{Open: 8})
}
