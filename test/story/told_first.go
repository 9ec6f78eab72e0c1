package story

import (
	"fmt"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// firstStories are of Runs that wait for their owner's money, of which small Runs would take every bit that frees.
func firstStories() []Story {
	return []Story{
		{Name: "first-in-line-for-money", Args: soon("20s"), Play: firstInLine},
		{Name: "first-in-line-until-it-cannot-be", Args: soon("20s"), Play: firstUntil},
		{Name: "first-in-line-keeps-from-growth", Args: soon("20s"), Play: firstBeforeGrowth},
		{Name: "first-in-line-keeps-from-family", Args: soon("20s"), Play: firstBeforeFamily},
		{Name: "first-in-line-of-two-owners", Args: soon("20s"), Play: firstOfTwo},
		{Name: "first-in-line-beside-far-dates", Args: map[string]any{"reservationLead": "1m"}, Play: firstFarOff},
		{Name: "first-in-line-gives-way-to-priority", Args: soon("20s"), Play: firstAndPriority},
		{Name: "first-in-line-and-short-runs", Args: map[string]any{"reservationLead": "2m"}, Play: firstAndShort},
		{Name: "first-in-line-awaits-room", Args: soon("20s"), Play: firstAwaitsRoom(true)},
		{Name: "first-in-line-awaits-room-without-cuts", Args: with(soon("20s"), "lottery", "None"),
			Play: firstAwaitsRoom(false)},
		{Name: "first-in-line-is-kept-what-it-wants-once", Args: with(soon("20s"), "lottery", "None"), Play: firstOnce},
	}
}

// waitsForMoney has small Runs of an owner hold all that it may spend, and a large one wait for all of it, for longer
// than the lead.
func (s *Teller) waitsForMoney(path string, small int, changes ...RunChange) {
	for i := range small {
		s.Submit(fmt.Sprintf("small-%d", i), 8, append(changes, InPods(8), s.By(path))...)
		s.Says(fmt.Sprintf("small-%d", i), rqv1.RunRunning, "bound 8 GPUs")
	}
	s.Submit("large", int32(8*small), InPods(8), s.By(path))
	s.Says("large", rqv1.RunPending, "short by")
	s.Later(time.Minute)
}

const firstOf = "first in line for what its owner may spend"

// firstInLine has one small Run after another end, and a younger one come for each: the large one that has waited for
// longer than all of these gets what frees, although nobody knew when it would.
func firstInLine(s *Teller) {
	s.Nodes("d0", 6)
	s.Fund("", Envelope("all", 32))
	s.waitsForMoney("", 4)
	for i := range 4 {
		s.Submit(fmt.Sprintf("young-%d", i), 8, InPods(8))
		s.Says(fmt.Sprintf("young-%d", i), rqv1.RunPending, "short by 8")
		s.Remove(fmt.Sprintf("small-%d", i))
		s.Gone(fmt.Sprintf("small-%d", i))
		if i < 3 {
			s.Refused(fmt.Sprintf("young-%d", i), "InsufficientBudget", "32 reserved for Run "+s.site.Namespace+"/large",
				firstOf)
		}
	}
	s.Says("large", rqv1.RunRunning, "bound 32 GPUs")
	for i := range 4 {
		s.Nothing(fmt.Sprintf("young-%d", i))
	}
	s.Sound()
	s.Remove("large")
	for i := range 4 {
		s.Says(fmt.Sprintf("young-%d", i), rqv1.RunRunning, "bound 8 GPUs")
	}
}

// firstUntil has a Run be kept nothing for any more that is suspended, asks for more than its owner could ever pay for,
// whose owner may spend less than that by now, or that is deleted.
func firstUntil(s *Teller) {
	s.Nodes("d0", 6)
	s.Fund("", Envelope("all", 16))
	s.waitsForMoney("", 2)
	s.Remove("small-0")
	s.Gone("small-0")
	concurrency := func(gpus int32) func() {
		return func() { s.EditBudget("", func(b *rqv1.Budget) { b.Spec.Envelopes[0].Concurrency = gpus }) }
	}
	edit := func(change RunChange) func() { return func() { s.Edit("large", change) } }
	for i, ends := range [][2]func(){
		{edit(Suspended), edit(Resumed)}, {edit(Total(24)), edit(Total(16))}, {concurrency(15), concurrency(16)},
	} {
		young := fmt.Sprintf("young-%d", i)
		s.Submit(young, 4, InPods(4))
		s.Refused(young, "InsufficientBudget", firstOf)
		ends[0]()
		s.Says(young, rqv1.RunRunning, "bound 4 GPUs")
		s.Remove(young)
		s.Gone(young)
		ends[1]()
		s.Says("large", rqv1.RunPending, "short by 8")
		s.Later(time.Minute)
	}
	s.Submit("young", 4, InPods(4))
	s.Refused("young", "InsufficientBudget", firstOf)
	s.Remove("large")
	s.Says("young", rqv1.RunRunning, "bound 4 GPUs")
}

// firstBeforeGrowth has no Run of the owner grow by what is kept for the first in line.
func firstBeforeGrowth(s *Teller) {
	s.Nodes("d0", 6)
	s.Fund("", Envelope("all", 24))
	s.Submit("grows", 8, InPods(8), Elastic(8, 24, 8), Desires(8))
	s.Says("grows", rqv1.RunRunning, "bound 8 GPUs")
	s.Submit("small", 8, InPods(8))
	s.Says("small", rqv1.RunRunning, "bound 8 GPUs")
	s.Submit("large", 16, InPods(8))
	s.Says("large", rqv1.RunPending, "short by 8")
	s.Later(time.Minute)
	s.Edit("grows", Desires(24))
	s.Later(2 * time.Minute)
	s.Same("GPUs of the Run that would grow", int32(8), s.Run("grows").Status.Width.Allocated)
	s.Remove("small")
	s.Says("large", rqv1.RunRunning, "bound 16 GPUs")
}

// firstBeforeFamily has the owner's relatives, and those to whom it lends, get nothing of what is kept.
func firstBeforeFamily(s *Teller) {
	s.Nodes("d0", 6)
	s.Fund("", Envelope("all", 1))
	s.Fund("team", Envelope("all", 16, s.Lends(0, "other:guest")))
	s.Fund("kin", Envelope("all", 1))
	s.Fund("other:guest", Envelope("all", 1))
	s.waitsForMoney("team", 2)
	s.Submit("relative", 8, InPods(8), s.By("kin"))
	s.Submit("borrower", 8, InPods(8), s.By("other:guest"), s.From("team"))
	s.Remove("small-0")
	s.Gone("small-0")
	s.Refused("relative", "InsufficientBudget", firstOf)
	s.Refused("borrower", "InsufficientBudget", firstOf)
	s.Remove("small-1")
	s.Says("large", rqv1.RunRunning, "bound 16 GPUs")
	s.Remove("large")
	s.Says("relative", rqv1.RunRunning, "bound 8 GPUs")
	s.Says("borrower", rqv1.RunRunning, "bound 8 GPUs")
}

// firstOfTwo has two relatives wait whose money the other's Runs hold: each gets its own, and nobody waits for the
// other for ever.
func firstOfTwo(s *Teller) {
	s.Nodes("d0", 6)
	s.Fund("a", Envelope("all", 16))
	s.Fund("b", Envelope("all", 16))
	for _, name := range []string{"a", "b"} {
		for i := range 2 {
			s.Submit(fmt.Sprintf("%s-%d", name, i), 8, InPods(8), s.By(name))
			s.Says(fmt.Sprintf("%s-%d", name, i), rqv1.RunRunning, "bound 8 GPUs")
		}
	}
	s.Submit("large-a", 16, InPods(8), s.By("a"))
	s.Submit("large-b", 16, InPods(8), s.By("b"))
	s.Later(time.Minute)
	s.Remove("a-0")
	s.Remove("b-0")
	s.Gone("a-0", "b-0")
	s.Submit("young-a", 8, InPods(8), s.By("a"))
	s.Submit("young-b", 8, InPods(8), s.By("b"))
	s.Refused("young-a", "InsufficientBudget", firstOf)
	s.Refused("young-b", "InsufficientBudget", firstOf)
	s.Remove("a-1")
	s.Remove("b-1")
	s.Says("large-a", rqv1.RunRunning, "bound 16 GPUs")
	s.Says("large-b", rqv1.RunRunning, "bound 16 GPUs")
}

// firstFarOff has a Run wait for the end of another that takes thirty hours: its money is kept although its date is
// further off than any other's would be kept for, and those may have it who end before.
func firstFarOff(s *Teller) {
	s.Nodes("d0", 4)
	s.Fund("", Envelope("all", 16))
	s.Submit("holder", 8, InPods(8), Lasts(30*time.Hour))
	s.Says("holder", rqv1.RunRunning, "bound 8 GPUs")
	s.Submit("wanted", 16, InPods(8))
	s.Promised("wanted", rqv1.ReservationPending)
	s.Later(2 * time.Minute)
	s.Submit("young", 4, InPods(4))
	s.Refused("young", "InsufficientBudget", "8 reserved for Run "+s.site.Namespace+"/wanted to start at")
	s.Submit("short", 4, InPods(4), Lasts(28*time.Hour))
	s.Says("short", rqv1.RunRunning, "bound 4 GPUs")
}

// firstAndPriority has a small Run of a higher priority have what is kept for another of its owner.
func firstAndPriority(s *Teller) {
	s.Class("urgent", 1000)
	s.Nodes("d0", 6)
	s.Fund("", Envelope("all", 16))
	s.waitsForMoney("", 2)
	s.Submit("young", 8, InPods(8))
	s.Remove("small-0")
	s.Refused("young", "InsufficientBudget", firstOf)
	s.Submit("first", 8, InPods(8), s.OfClass("urgent"))
	s.Says("first", rqv1.RunRunning, "bound 8 GPUs")
	s.Nothing("young")
}

// firstAndShort has Runs have what is kept that give it back before it can have become enough.
func firstAndShort(s *Teller) {
	s.Nodes("d0", 6)
	s.Fund("", Envelope("all", 16))
	s.waitsForMoney("", 2)
	s.Later(2 * time.Minute)
	s.Remove("small-0")
	s.Gone("small-0")
	s.Submit("long", 8, InPods(8), Lasts(3*time.Minute))
	s.Refused("long", "InsufficientBudget", firstOf, "usable while it has no date by Runs whose maxDuration is at most 2m")
	s.Submit("short", 8, InPods(8), Lasts(2*time.Minute))
	s.Says("short", rqv1.RunRunning, "bound 8 GPUs")
	s.Remove("small-1")
	s.Promised("large", rqv1.ReservationPending)
	s.Later(10 * time.Second)
	s.Submit("late", 8, InPods(8), Lasts(2*time.Minute))
	s.Refused("late", "InsufficientBudget", "8 reserved for Run "+s.site.Namespace+"/large to start at")
	s.Remove("short")
	s.Says("large", rqv1.RunRunning, "bound 16 GPUs")
}

// firstAwaitsRoom has money come together for a Run whose room another owner's Runs have by then: it goes on being kept
// while the Run waits for room, or small ones would take money and room again and again. Others are cut for it, or end.
func firstAwaitsRoom(cuts bool) func(*Teller) {
	return func(s *Teller) { s.awaitsRoom(cuts) }
}

func (s *Teller) awaitsRoom(cuts bool) {
	s.Nodes("d0", 4)
	s.Fund("a", Envelope("all", 16))
	s.Fund("other:b", Envelope("all", 32))
	for _, name := range []string{"b-0", "b-1"} {
		s.Submit(name, 8, InPods(8), s.By("other:b"))
		s.Says(name, rqv1.RunRunning, "bound 8 GPUs")
	}
	s.waitsForMoney("a", 2)
	for i := range 2 {
		name := fmt.Sprintf("b-%d", i+2)
		s.Submit(name, 8, InPods(8), s.By("other:b"))
		s.Remove(fmt.Sprintf("small-%d", i))
		s.Says(name, rqv1.RunRunning, "bound 8 GPUs")
		s.Submit(fmt.Sprintf("young-%d", i), 8, InPods(8), s.By("a"))
	}
	if !cuts {
		s.Later(5 * time.Second)
		s.Remove("b-0")
		s.Gone("b-0")
		s.Later(5 * time.Second)
		for i := range 2 {
			s.Refused(fmt.Sprintf("young-%d", i), "InsufficientBudget", firstOf)
		}
		s.Remove("b-1")
	}
	s.Says("large", rqv1.RunRunning, "bound 16 GPUs")
	for i := range 2 {
		s.Nothing(fmt.Sprintf("young-%d", i))
	}
	s.Sound()
}

// firstOnce has a Run whose owner has two envelopes wait for money, and then for room: what it does not want of them is
// for the owner's other Runs.
func firstOnce(s *Teller) {
	s.Nodes("d0", 5)
	s.Fund("a", Envelope("one", 16), Envelope("two", 16))
	s.Fund("other:b", Envelope("all", 32))
	s.Submit("b-0", 8, InPods(8), s.By("other:b"))
	s.Says("b-0", rqv1.RunRunning, "bound 8 GPUs")
	for i := range 4 {
		s.Submit(fmt.Sprintf("small-%d", i), 8, InPods(8), s.By("a"))
		s.Says(fmt.Sprintf("small-%d", i), rqv1.RunRunning, "bound 8 GPUs")
	}
	s.Submit("large", 16, InPods(8), s.By("a"))
	s.Says("large", rqv1.RunPending, "short by")
	s.Later(time.Minute)
	for i := range 3 {
		name := fmt.Sprintf("b-%d", i+1)
		s.Submit(name, 8, InPods(8), s.By("other:b"))
		s.Remove(fmt.Sprintf("small-%d", i))
		s.Says(name, rqv1.RunRunning, "bound 8 GPUs")
	}
	s.Remove("small-3")
	s.Gone("small-3")
	s.Later(5 * time.Second)
	s.Submit("young", 8, InPods(8), s.By("a"))
	s.Says("young", rqv1.RunRunning, "bound 8 GPUs")
	s.Remove("b-0")
	s.Remove("b-1")
	s.Says("large", rqv1.RunRunning, "bound 16 GPUs")
	s.Sound()
}
