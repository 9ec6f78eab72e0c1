package story

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// moneyStories are of who pays, for what, where and for how long.
func moneyStories() []Story {
	return []Story{
		{Name: "gpu-hours-ahead", Play: gpuHoursAhead},
		{Name: "gpu-hours-spent", Play: gpuHoursSpent},
		{Name: "budget-lost-and-found", Play: budgetLostAndFound},
		{Name: "money-for-one-place", Play: moneyForOnePlace},
		{Name: "money-for-two-places", Play: moneyForTwoPlaces},
		{Name: "two-lend-to-each-other", Play: twoLendToEachOther},
		{Name: "circle-of-parents", Play: circleOfParents},
		{Name: "sponsors-that-do-not-pay", Play: sponsorsThatDoNotPay},
	}
}

// In has an envelope pay only on nodes with a label.
func In(key, value string) func(*rqv1.Envelope) {
	return func(e *rqv1.Envelope) { e.Selector = map[string]string{key: value} }
}

// Hours bounds the GPU-hours of an envelope.
func Hours(most int64) func(*rqv1.Envelope) { return func(e *rqv1.Envelope) { e.MaxGPUHours = &most } }

// gpuHoursAhead has a Budget of one GPU-hour: a Run must be paid for until its maxDuration ends it, or for its next
// hour, and nothing that is promised to one is promised to another.
func gpuHoursAhead(s *Teller) {
	s.Nodes("d0", 2)
	s.Fund("team", Envelope("all", 16, Hours(1)))
	s.Submit("endless", 2, s.By("team"), InPods(2))
	s.Refused("endless", "InsufficientGPUHours", "short by 2 of 2 GPUs", "maxGPUHours: 1.00000 of 1.00000 GPU-hours left")
	s.Submit("short", 4, s.By("team"), InPods(4), Lasts(10*time.Minute))
	s.Says("short", rqv1.RunRunning, "bound 4 GPUs")
	s.Submit("second", 4, s.By("team"), InPods(4), Lasts(10*time.Minute))
	s.Refused("second", "InsufficientGPUHours", "of 1.00000 GPU-hours left")
	s.Submit("small", 2, s.By("team"), InPods(2), Lasts(5*time.Minute))
	s.Says("small", rqv1.RunRunning, "bound 2 GPUs")
	s.Remove("short")
	s.Says("second", rqv1.RunRunning, "bound 4 GPUs")
	s.EditBudget("team", func(b *rqv1.Budget) { b.Spec.Envelopes[0].MaxGPUHours = ptr.To[int64](4) })
	s.Says("endless", rqv1.RunRunning, "bound 2 GPUs")
	s.Sound()
	for _, run := range []string{"endless", "second", "small"} {
		s.Remove(run)
	}
	s.Gone("short", "endless", "second", "small")
	s.Spent("team")
}

// gpuHoursSpent has a Run spend the last GPU-hour: it goes on in overdraft, everybody is told, nothing new is paid for,
// and a new window starts fresh.
func gpuHoursSpent(s *Teller) {
	s.Nodes("d", 5, WithGPUs(256))
	s.Fund("team", Envelope("all", 2000, Hours(5000)))
	s.Submit("burning", 1024, s.By("team"), InPods(256))
	s.Says("burning", rqv1.RunRunning, "bound 1024 GPUs")
	before := s.Traces("burning")
	s.EditBudget("team", func(b *rqv1.Budget) { Hours(1)(&b.Spec.Envelopes[0]) }) // which is spent within four seconds
	s.Overdrawn("team", metav1.ConditionTrue, "GPUHoursSpent")
	s.InOverdraft("burning", metav1.ConditionTrue, "BeyondBudget")
	s.Funded("burning", 0, s.Pay("team", 1024, "overdraft"))
	s.Uses("team", rqv1.EnvelopeStatus{Name: "all", OverdraftGPUs: 1024})
	s.Submit("new", 1, s.By("team"))
	s.Refused("new", "InsufficientGPUHours", "maxGPUHours: 0.00000 of 1.00000 GPU-hours left")
	s.Same("GPU-hours that are left", "0.00000", s.IsBudget("team").Status.Envelopes[0].GPUHours.Left)
	s.Same("pods and Leases", before, s.Traces("burning"))
	s.Sound()

	s.Remove("burning")
	s.Gone("burning")
	s.Overdrawn("team", metav1.ConditionFalse, "WithinLimits")
	s.Spent("team")
	s.Refused("new", "InsufficientGPUHours", "maxGPUHours: 0.00000 of 1.00000 GPU-hours left")
	s.EditBudget("team", func(b *rqv1.Budget) { b.Spec.Envelopes[0].Start = s.In(0) })
	s.Says("new", rqv1.RunRunning, "bound 1 GPUs")
	s.Uses("team", rqv1.EnvelopeStatus{Name: "all", OwnedGPUs: 1})
}

// budgetLostAndFound deletes a Budget by accident while it pays and has paid: the Run goes on, and once the Budget is
// back, so are its usage and every GPU-second.
func budgetLostAndFound(s *Teller) {
	s.Nodes("d0", 2)
	s.Fund("team", Envelope("all", 16))
	s.Submit("past", 8, s.By("team"), Succeeds(2*time.Second))
	s.Says("past", rqv1.RunCompleted, "completed")
	s.Submit("held", 8, s.By("team"))
	s.Says("held", rqv1.RunRunning, "bound 8 GPUs")
	s.Uses("team", rqv1.EnvelopeStatus{Name: "all", OwnedGPUs: 8})
	before := s.Traces("held")

	s.Defund("team")
	s.InOverdraft("held", metav1.ConditionTrue, "BeyondBudget")
	s.Funded("held", 0, s.Pay("team", 8, "overdraft"))
	s.Submit("new", 8, s.By("team"))
	s.Refused("new", "NoBudget", "no Budget of owner")

	s.Fund("team", Envelope("all", 16))
	s.InOverdraft("held", metav1.ConditionFalse, "WithinBudget")
	s.Funded("held", 8)
	s.Says("new", rqv1.RunRunning, "bound 8 GPUs")
	s.Same("pods and Leases", before, s.Traces("held"))
	s.Sound()
	s.Remove("held")
	s.Remove("new")
	s.Gone("held", "new")
	s.Spent("team")
}

// moneyForOnePlace has a team whose Budget pays in the west only: it never lands in the east, though there is room.
func moneyForOnePlace(s *Teller) {
	s.Nodes("east", 4, Labelled("region", "us-east"))
	s.Nodes("west", 2, Labelled("region", "us-west"))
	s.Fund("team", Envelope("west", 64, In("region", "us-west")))
	s.Submit("first", 8, s.By("team"))
	s.Submit("second", 8, s.By("team"))
	s.Says("first", rqv1.RunRunning, "bound 8 GPUs")
	s.Says("second", rqv1.RunRunning, "bound 8 GPUs")
	s.Submit("third", 8, s.By("team"))
	s.Says("third", rqv1.RunPending, "short by 8")
	s.Nothing("third")
	s.Fund("other", Envelope("anywhere", 32))
	s.Submit("elsewhere", 32, s.By("other"))
	s.Says("elsewhere", rqv1.RunRunning, "bound 32 GPUs")
	s.Remove("first")
	s.Says("third", rqv1.RunRunning, "bound 8 GPUs")
	for _, run := range []string{"second", "third"} {
		held := s.Held(run)
		s.Same("GPUs of "+run+" in the west", int32(8), held["west-0"]+held["west-1"])
	}
}

// moneyForTwoPlaces has a Run over two domains that two envelopes pay for, because neither pays for all of it.
func moneyForTwoPlaces(s *Teller) {
	s.Nodes("east", 3, Labelled("region", "us-east"))
	s.Nodes("west", 3, Labelled("region", "us-west"))
	s.Fund("team", Envelope("east", 16, In("region", "us-east")), Envelope("west", 16, In("region", "us-west")))
	s.Submit("wide", 32, s.By("team"), InGroups(16))
	s.Says("wide", rqv1.RunRunning, "bound 32 GPUs")
	for _, l := range s.World().LeasesOf("wide") {
		s.Same("where envelope "+l.Spec.PaidByEnvelope+" pays", l.Spec.PaidByEnvelope,
			strings.Split(s.short(l.Node()), "-")[0])
	}
	s.Pays("wide", map[string]int32{"team/east own Active": 16, "team/west own Active": 16})
	s.Submit("more", 8, s.By("team"))
	s.Refused("more", "InsufficientBudget", "16 of 16 GPUs in use")
	s.Remove("more") // which is promised a node, of either place
	s.Gone("more")
	s.Fund("rich", Envelope("east", 16, In("region", "us-east")))
	s.Submit("east", 16, s.By("rich"), InPods(8))
	s.Refused("east", "NoRoomWhereFunded", "16 ", "needed, and 8 fit now where a Budget pays for them: short by 8; ",
		"/east pays for up to 16 on nodes with region=us-east")
}

// twoLendToEachOther has two teams that lend to each other: each may spend what the other leaves, and it all comes to
// an end.
func twoLendToEachOther(s *Teller) {
	s.Nodes("d0", 4)
	s.Fund("a", Envelope("all", 8, s.Lends(0, "b")))
	s.Fund("b", Envelope("all", 8, s.Lends(0, "a")))
	s.Submit("of-a", 12, s.By("a"), InPods(4), s.From("b"))
	s.Says("of-a", rqv1.RunRunning, "bound 12 GPUs")
	s.Funded("of-a", 8, s.Pay("b", 4, "sponsor"))
	s.Submit("of-b", 12, s.By("b"), InPods(4), s.From("a"))
	s.Refused("of-b", "InsufficientBudget", "short by 8 of 12 GPUs")
	s.Submit("small", 4, s.By("b"), InPods(4), s.From("a"))
	s.Says("small", rqv1.RunRunning, "bound 4 GPUs")
	s.Uses("b", rqv1.EnvelopeStatus{Name: "all", OwnedGPUs: 4, LentGPUs: 4, LendingGPUs: 4})
	s.Remove("of-a")
	s.Says("of-b", rqv1.RunRunning, "bound 12 GPUs")
	s.Funded("of-b", 4, s.Pay("a", 8, "sponsor"))
	s.Uses("a", rqv1.EnvelopeStatus{Name: "all", LentGPUs: 8, LendingGPUs: 8})
	s.Sound()
	s.Remove("of-b")
	s.Remove("small")
	s.Uses("a", rqv1.EnvelopeStatus{Name: "all"})
	s.Uses("b", rqv1.EnvelopeStatus{Name: "all"})
}

// circleOfParents has two owners be each other's parent: the Budgets say so, and others pay as ever.
func circleOfParents(s *Teller) {
	s.Nodes("d0", 4)
	for _, path := range []string{"w", "x", "y", "z"} {
		s.Fund(path, Envelope("all", 8))
	}
	below := func(path string, parents ...rqv1.Owner) {
		s.EditBudget(path, func(b *rqv1.Budget) { b.Spec.Parents = parents })
	}
	below("x", s.Owner("y"))
	below("y", s.Owner("x"))
	below("z", s.Owner("w"))
	for _, path := range []string{"x", "y"} {
		circular := s.BudgetSays(path, rqv1.ConditionCircular, metav1.ConditionTrue, "CircleOfParents")
		for _, owner := range []string{"x", "y"} {
			s.Same("Budget "+path+" names "+owner, true, strings.Contains(circular.Message, string(s.Owner(owner))))
		}
	}
	s.Submit("outside", 16, s.By("z"), InPods(8))
	s.Says("outside", rqv1.RunRunning, "bound 16 GPUs")
	s.Funded("outside", 8, s.Pay("w", 8, "ancestor"))
	s.Submit("inside", 8, s.By("x"))
	s.Says("inside", rqv1.RunRunning, "bound 8 GPUs")
	s.Funded("inside", 8)
	below("y")
	for _, path := range []string{"x", "y"} {
		s.BudgetSays(path, rqv1.ConditionCircular, metav1.ConditionFalse, "NoCircle")
	}
	for _, path := range []string{"z", "w"} {
		s.Same("conditions of Budget "+path, 0, len(s.IsBudget(path).Status.Conditions))
	}
	s.Submit("child", 8, s.By("x"))
	s.Says("child", rqv1.RunRunning, "bound 8 GPUs")
	s.Funded("child", 0, s.Pay("y", 8, "ancestor"))
}

// sponsorsThatDoNotPay has sponsors that do not lend, or not so much: the Run waits and is told which limit it is.
func sponsorsThatDoNotPay(s *Teller) {
	s.Nodes("d0", 8)
	lends := s.Lends(0, "borrower")
	cases := map[string]struct {
		most            int32
		lender          func(*rqv1.Envelope)
		reason, message string
	}{
		"silent": {0, func(*rqv1.Envelope) {}, "InsufficientBudget", "it does not lend to"},
		"unwilling": {0, func(e *rqv1.Envelope) { lends(e); e.Lending.Allow = false }, "InsufficientBudget",
			"it does not lend to"},
		"nobody": {0, s.Lends(0), "InsufficientBudget", "it does not lend to"},
		"other":  {0, s.Lends(0, "borrowers", "borrower:team"), "InsufficientBudget", "it does not lend to"},
		"stingy": {0, s.Lends(7, "borrower"), "InsufficientBudget", "lending.maxConcurrency: 7 of 7 GPUs left"},
		"hourly": {0, func(e *rqv1.Envelope) { lends(e); e.Lending.MaxGPUHours = ptr.To[int64](7) },
			"InsufficientBudget", "lending.maxGPUHours: 7.00000 of 7.00000 GPU-hours left"},
		"modest": {7, lends, "BorrowLimit", "borrow limit of 7 GPUs exhausted for requested width"},
	}
	s.Fund("borrower", Envelope("all", 8))
	for _, name := range sortedKeys(cases) {
		c := cases[name]
		s.Fund(name, Envelope("all", 8, c.lender))
		s.Submit(name, 16, s.By("borrower"), InPods(1), s.From(name), Borrows(c.most))
	}
	for _, name := range sortedKeys(cases) {
		s.Refused(name, cases[name].reason, cases[name].message)
	}
	s.EditBudget("stingy", func(b *rqv1.Budget) { b.Spec.Envelopes[0].Lending.MaxConcurrency = nil })
	s.Says("stingy", rqv1.RunRunning, "bound 16 GPUs")
	s.Funded("stingy", 8, s.Pay("stingy", 8, "sponsor"))
}
