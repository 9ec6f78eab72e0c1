package story

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// waitStories are of Runs that wait, what they have meanwhile, and what has them start.
func waitStories() (all []Story) {
	for name, wake := range wakers {
		all = append(all, Story{Name: "woken-by-" + name, Play: func(s *Teller) { woken(s, wake) }})
	}
	return append(all,
		Story{Name: "either-fits-and-both-do-not", Play: eitherFits},
		Story{Name: "long-line", Play: longLine},
		Story{Name: "back-in-line", Play: backInLine},
		Story{Name: "pods-of-a-waiting-run", Play: podsOfAWaitingRun},
		Story{Name: "early-room", Play: earlyRoom},
		Story{Name: "suspended-before-it-starts", Play: suspendedBeforeItStarts},
		Story{Name: "suspended-stands-still", Play: suspendedStandsStill},
		Story{Name: "suspended-while-it-runs", Alone: "it kills the scheduler", Play: suspendedWhileItRuns})
}

// calm is how long a Run that waits is watched for things that it should not do.
const calm = 3 * time.Second

// waker is a way in which room, or a payer, comes about for a Run of 16 GPUs.
type waker struct {
	prepare func(*Teller)
	refusal string
	wake    func(*Teller)
}

// wakers are all ways.
var wakers = map[string]waker{
	"a-lease": {prepare: func(s *Teller) {
		s.Fund("", Envelope("all", 100))
		s.holder()
	}, refusal: "short by 8", wake: func(s *Teller) { s.Remove("holder") }},
	"a-node": {prepare: func(s *Teller) {
		s.Fund("", Envelope("all", 100))
		s.Occupy("holder", "d0-0", GPUs(8))
	}, refusal: "short by", wake: func(s *Teller) { s.Nodes("d1", 1) }},
	"a-raised-budget": {prepare: func(s *Teller) { s.Fund("", Envelope("all", 8)) }, refusal: "short by 8",
		wake: func(s *Teller) { s.Fund("", Envelope("all", 16)) }},
	"a-budget": {prepare: func(*Teller) {}, refusal: "no Budget",
		wake: func(s *Teller) { s.Fund("", Envelope("all", 16)) }},
	"an-uncordoned-node": {prepare: func(s *Teller) {
		s.Fund("", Envelope("all", 100))
		s.ChangeNode("d0-1", Cordoned)
	}, refusal: "short by", wake: func(s *Teller) { s.ChangeNode("d0-1", GivenBack) }},
	"a-foreign-pod": {prepare: func(s *Teller) {
		s.Fund("", Envelope("all", 100))
		s.Occupy("holder", "d0-0", GPUs(8))
	}, refusal: "short by 8", wake: func(s *Teller) { s.DeletePod("holder") }},
	"room-where-it-is-paid-for": {prepare: func(s *Teller) {
		s.Nodes("d1", 2)
		s.Fund("", Envelope("all", 100, func(e *rqv1.Envelope) {
			e.Selector = map[string]string{"fabric.domain": s.full("d0")}
		}))
		s.Occupy("holder", "d0-0", GPUs(8))
		s.Occupy("holder-2", "d0-1", GPUs(8))
	}, refusal: "short by 16", wake: func(s *Teller) {
		s.DeletePod("holder")
		s.DeletePod("holder-2")
	}},
	"a-payer": {prepare: func(s *Teller) {
		s.Nodes("d1", 2)
		s.Fund("", Envelope("all", 16))
		s.holder()
	}, refusal: "budget of", wake: func(s *Teller) { s.Remove("holder") }},
}

// holder starts a Run of a node.
func (s *Teller) holder() {
	s.T.Helper()
	s.Submit("holder", 8)
	s.Says("holder", rqv1.RunRunning, "bound 8 GPUs")
}

// woken has a Run of two nodes wait, which holds nothing, and makes room for it, or gives it a payer.
func woken(s *Teller, c waker) {
	s.Nodes("d0", 2)
	c.prepare(s)
	s.Submit("waiting", 16)
	s.Says("waiting", rqv1.RunPending, c.refusal)
	s.Nothing("waiting")
	c.wake(s)
	s.Says("waiting", rqv1.RunRunning, "bound 16 GPUs")
}

// eitherFits submits two Runs of which either fits and both do not, in either order: one starts whole, the other waits
// whole and holds nothing, and it starts when the first is deleted.
func eitherFits(s *Teller) {
	s.Nodes("d0", 2)
	s.Nodes("d1", 2)
	s.Fund("", Envelope("all", 32))
	for _, first := range []string{"small", "large"} {
		small, large := "small-"+first, "large-"+first
		if first == "small" {
			s.Submit(small, 16, InPods(2))
		}
		s.Submit(large, 24, InPods(4))
		if first == "large" {
			s.Submit(small, 16, InPods(2))
		}
		winner, loser := s.oneOf(small, large)
		s.Nothing(loser)
		s.Sound()
		s.Remove(winner)
		s.Says(loser, rqv1.RunRunning, "bound")
		s.Sound()
		s.Remove(loser)
		s.Gone(winner, loser)
	}
}

// oneOf waits until one of two Runs runs and the other is refused for want of GPUs, and returns them in this order.
func (s *Teller) oneOf(a, b string) (winner, loser string) {
	s.T.Helper()
	s.Until("one Run is to start and one to wait", func() (errs error) {
		w := s.World()
		for _, pair := range [][2]string{{a, b}, {b, a}} {
			err := errors.Join(s.said(w.Run(pair[0]), rqv1.RunRunning, []string{"bound"}),
				s.said(w.Run(pair[1]), rqv1.RunPending, []string{"short by"}))
			if err == nil {
				winner, loser = pair[0], pair[1]
				return nil
			}
			errs = errors.Join(errs, err)
		}
		return errs
	})
	return winner, loser
}

// longLine has 40 Runs wait for one node: the first 32 have dates, the others a place in line, and who comes to the
// front has a date.
func longLine(s *Teller) {
	s.Nodes("d0", 1)
	s.Fund("", Envelope("all", 1000))
	s.Submit("holder", 8, Lasts(time.Hour))
	s.Says("holder", rqv1.RunRunning, "bound 8 GPUs")
	name := func(i int) string { return fmt.Sprintf("waits-%02d", i) }
	dated := func(first, last int, want bool) (errs error) {
		w := s.World()
		for i := first; i <= last; i++ {
			is := w.Run(name(i)).Status
			if (is.EarliestStart != nil) != want || (is.Queue == nil) != want {
				errs = errors.Join(errs, fmt.Errorf("%s starts at %v, and has the place %+v", name(i), is.EarliestStart, is.Queue))
			}
		}
		return errs
	}
	for i := range 32 {
		s.Submit(name(i), 8, Lasts(time.Hour))
	}
	s.Until("dates", func() error { return dated(0, 31, true) })
	for i := 32; i < 40; i++ { // a Run that is refused while fewer are in line has a date, and keeps it
		s.Submit(name(i), 8, Lasts(time.Hour))
	}
	s.Until("dates and places", func() error { return errors.Join(dated(0, 31, true), dated(32, 39, false)) })
	for i := range 8 {
		s.Remove(name(i))
	}
	s.Until("dates of all", func() error { return dated(8, 39, true) })
}

// backInLine has a Run that runs lose a node and wait for another: whoever has no date, and was the first in line, is
// told that somebody is ahead of it again, and that nobody is once that Run is gone.
func backInLine(s *Teller) {
	s.Nodes("d0", 2)
	s.Fund("", Envelope("all", 16, unshared))
	s.Fund("spent", Envelope("all", 16, unshared, func(e *rqv1.Envelope) { e.MaxGPUHours = new(int64(1)) }))
	s.Submit("old", 16, InPods(8), Checkpointed(time.Hour))
	s.Says("old", rqv1.RunRunning, "bound 16 GPUs")
	s.Submit("young", 16, s.By("spent"), InPods(8))
	ahead := func(want int32, says bool) {
		s.Until(fmt.Sprintf("young is to be told of %d ahead", want), func() error {
			is := s.Run("young").Status
			if is.Queue == nil {
				return fmt.Errorf("it has no place in line: %s", is.Message)
			}
			return differs([]any{want, says},
				[]any{is.Queue.Ahead, strings.Contains(is.Message, "other Runs ahead of it wait")})
		})
	}
	ahead(0, false)
	s.Lose("d0-0")
	s.Says("old", rqv1.RunPending, "short by 8")
	ahead(1, true)
	s.Remove("old")
	ahead(0, false)
}

// podsOfAWaitingRun counts the pods of a Run of four: none while its money is in use, its leader's while only GPUs are
// short, and all of them when it starts.
func podsOfAWaitingRun(s *Teller) {
	s.Nodes("d0", 1)
	s.Fund("", Envelope("all", 8))
	s.holder()
	s.Submit("waiting", 8, InPods(2), Templated(nothing))
	pods := func(want int) func() error { return func() error { return differs(want, len(s.Pods("waiting"))) } }
	s.Says("waiting", rqv1.RunPending, "8 of 8 GPUs in use")
	s.Never(calm, "a Run that nobody can pay for", pods(0))
	s.Fund("", Envelope("all", 16))
	s.Says("waiting", rqv1.RunPending, "short by 8")
	s.Until("its leader", pods(1))
	s.Never(calm, "a Run that waits for GPUs", pods(1))
	s.Remove("holder")
	s.Says("waiting", rqv1.RunRunning, "bound 8 GPUs")
	s.Same("how many pods it has", 4, len(s.Pods("waiting")))
	for name, pod := range s.Pods("waiting") {
		s.Same("how many ranks "+name+" is told of", "4", Told(pod, "WORLD_SIZE"))
	}
}

// earlyRoom frees the room that a Run waits for long before its date: it starts, and nothing is drawn.
func earlyRoom(s *Teller) {
	s.Nodes("d0", 2)
	s.Fund("", Envelope("all", 64))
	s.Submit("holder", 16, InPods(8))
	s.Says("holder", rqv1.RunRunning, "bound 16 GPUs")
	s.Submit("wanted", 16, InPods(8))
	s.Promised("wanted", rqv1.ReservationPending)
	s.Remove("holder")
	s.Says("wanted", rqv1.RunRunning, "bound 16 GPUs")
	r := s.Promised("wanted", rqv1.ReservationReleased)
	if l := r.Status.Lottery; r.Status.ActivatedAt != nil || len(r.Status.Cuts) > 0 || l == nil || l.Nonce != "" {
		s.Errorf("it was activated: %+v", r.Status)
	}
	s.Until("it is to wait for nothing", func() error {
		is := s.Run("wanted").Status
		return differs([]any{"", true}, []any{is.PendingReservation, is.EarliestStart == nil})
	})
}

// suspendedBeforeItStarts holds a Run back, which is forecast and keeps nobody from anything, and has it start when it
// is resumed. One that only asks goes by itself when whoever has asked does not delete it.
func suspendedBeforeItStarts(s *Teller) {
	s.Nodes("d0", 2)
	s.Fund("", Envelope("all", 100))
	s.Submit("held", 16, InPods(8), Suspended)
	s.forecast("held", func(f *rqv1.RunForecast) bool { return f.GPUs == 16 && f.Refusal == nil })
	s.Same("how many pods it has", 0, len(s.Pods("held")))
	s.Submit("young", 16, InPods(8))
	s.Says("young", rqv1.RunRunning, "bound 16 GPUs")
	s.Edit("held", Resumed)
	run := s.Says("held", rqv1.RunPending, "short by 16")
	if run.Status.Forecast != nil || meta.IsStatusConditionTrue(run.Status.Conditions, rqv1.ConditionSuspended) {
		s.Errorf("it has been resumed, and its status is %+v", run.Status)
	}
	r := s.Promised("held", rqv1.ReservationPending)
	s.Until("it is to say so", func() error { return differs(r.Name, s.Run("held").Status.PendingReservation) })
	s.Edit("held", Suspended)
	s.forecast("held", func(f *rqv1.RunForecast) bool {
		return f.EarliestStart != nil && f.Expected != nil && f.Expected.DeficitGPUs == 16 && f.Refusal != nil
	})
	s.Promised("held", rqv1.ReservationCanceled)
	s.Same("how many Reservations it had", 1, len(s.Reservations("held")))

	asked := rqv1.WhatIfPrefix + "left"
	s.Submit(asked, 8, InPods(8), Suspended, StaysFor(1), func(r *rqv1.Run) {
		r.Labels = map[string]string{rqv1.LabelWhatIf: "true"}
	})
	s.Gone(asked)
}

// suspendedStandsStill has a Run that was held back while another came to wait be behind that one: its age stands still
// as long as it is suspended, so that nobody has a place for a Run that is kept for the day that counts.
func suspendedStandsStill(s *Teller) {
	s.Nodes("d0", 1)
	s.Fund("", Envelope("all", 100))
	s.Submit("train", 8, InPods(8))
	s.Says("train", rqv1.RunRunning, "bound 8 GPUs")
	s.Submit("parked", 8, InPods(8), Suspended)
	s.Says("parked", rqv1.RunPending, "suspended")
	s.Later(3 * time.Second)
	s.Submit("waits", 8, InPods(8))
	s.Says("waits", rqv1.RunPending, "short by 8")
	s.Later(2 * time.Second)
	s.Edit("parked", Resumed)
	s.Until("its place is to be later", func() error {
		is, waits := s.Run("parked"), s.Run("waits").CreationTimestamp
		if is.Status.PlaceSince == nil || !is.Status.PlaceSince.After(waits.Time) || is.Status.SuspendedSeconds == 0 {
			return fmt.Errorf("it has its place since %v, and waits was made at %v", is.Status.PlaceSince, waits)
		}
		return nil
	})
	s.Says("parked", rqv1.RunPending, "short by 8")
	s.Remove("train")
	s.Says("waits", rqv1.RunRunning, "bound 8 GPUs")
	s.Says("parked", rqv1.RunPending, "short by 8")
	s.Remove("waits")
	s.Says("parked", rqv1.RunRunning, "bound 8 GPUs")
}

// forecast waits until a suspended Run's forecast is as it should be.
func (s *Teller) forecast(run string, as func(*rqv1.RunForecast) bool) {
	s.T.Helper()
	s.Until("the forecast of Run "+run, func() error {
		is := s.Run(run).Status
		if !meta.IsStatusConditionTrue(is.Conditions, rqv1.ConditionSuspended) || is.Forecast == nil || !as(is.Forecast) {
			return fmt.Errorf("its status is %+v, its forecast %+v", is, is.Forecast)
		}
		return nil
	})
}

// suspendedWhileItRuns has a Run with a spare give up all that it holds, while the scheduler is killed, and start again
// when it is resumed.
func suspendedWhileItRuns(s *Teller) {
	s.Nodes("d0", 3)
	s.Fund("", Envelope("all", 100))
	s.Submit("train", 16, InPods(8), InGroups(16), Spares(8), Takes(10*time.Second, 4*time.Second))
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	s.Edit("train", Suspended)
	s.Kill()
	s.Says("train", rqv1.RunPending, "suspended")
	s.Later(time.Second)
	s.Kill() // its pods are ending
	s.Ended("train")
	s.Until("its pods are to be gone", func() error { return differs(0, len(s.Pods("train"))) })
	s.Ledger("train", Leases{"Suspended": 3})
	s.Submit("other", 24, InPods(8))
	s.Says("other", rqv1.RunRunning, "bound 24 GPUs")
	s.Remove("other")
	s.Gone("other")
	s.Kill()
	s.Edit("train", Resumed)
	s.Says("train", rqv1.RunRunning, "bound 16 GPUs")
	s.Until("its ranks are ready", func() error { return differs(int32(2), s.Run("train").Status.Ready) })
	s.standsBy("train", 8)
}
