package story

import (
	"maps"
	"slices"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// borrowedStories are of Runs that have grown on their own money above groups that a sponsor pays for.
func borrowedStories() []Story {
	return []Story{
		{Name: "borrowed-first-by-desire", Play: func(s *Teller) { borrowedFirst(s, 24, (*Teller).desiresLess) }},
		{Name: "borrowed-first-by-return", Args: soon("1s"),
			Play: func(s *Teller) { borrowedFirst(s, 24, (*Teller).makesRoom) }},
		{Name: "borrowed-first-by-activation", Args: soon("1s"),
			Play: func(s *Teller) { borrowedFirst(s, 40, (*Teller).makesRoom) }},
		{Name: "borrowed-stays-where-own-does-not-pay", Play: borrowedStays},
		{Name: "borrowed-first-of-the-family", Play: borrowedOfTheFamily},
		{Name: "borrowed-first-though-lent-no-more", Play: borrowedOfWhoLendsNoMore},
	}
}

// borrowedFirst has a Run of 24 GPUs be paid by its owner for 16 and by a sponsor for 8, then grow to 40 on its owner's
// money. What the sponsor pays for is the highest group again, so that it is what a narrower Run gives back first.
func borrowedFirst(s *Teller, total int32, narrower func(*Teller)) {
	s.Nodes("d0", 5)
	s.Fund("team", Envelope("own", 16))
	s.Fund("lender", Envelope("lent", 8, s.Lends(8, "team")))
	s.Submit("train", total, s.By("team"), InPods(8), InGroups(8), Elastic(8, 40, 8), s.From("lender"))
	s.Says("train", rqv1.RunRunning, "bound 24 GPUs")
	s.Funded("train", 16, s.Pay("lender", 8, "sponsor"))
	s.paidBy("train", "team/own", "team/own", "lender/lent")
	s.EditBudget("team", func(b *rqv1.Budget) { b.Spec.Envelopes[0].Concurrency = 32 })
	s.Edit("train", Desires(40))
	s.Says("train", rqv1.RunRunning, "grew to 40 GPUs")
	s.paidBy("train", "team/own", "team/own", "team/own", "team/own", "lender/lent")
	s.Funded("train", 32, s.Pay("lender", 8, "sponsor"))
	s.Uses("team", rqv1.EnvelopeStatus{Name: "own", OwnedGPUs: 32})
	s.Uses("lender", rqv1.EnvelopeStatus{Name: "lent", LentGPUs: 8, LendingGPUs: 8})
	s.Sound()
	before := s.Pods("train")
	narrower(s)
	s.Funded("train", 32)
	s.Uses("lender", rqv1.EnvelopeStatus{Name: "lent"})
	after := s.Pods("train")
	for _, name := range []string{"train-0", "train-1", "train-2", "train-3"} {
		s.Same("the pod "+name, before[name].UID, after[name].UID)
	}
	s.Spent("lender")
}

// borrowedOfTheFamily has a Run of 24 GPUs be paid by its owner for 16 and by the owner's parent for 8, then grow to 40
// on its owner's money. What the parent pays for is given back first.
func borrowedOfTheFamily(s *Teller) {
	s.Nodes("d0", 5)
	s.Fund("lab", Envelope("pool", 8))
	s.Fund("lab:team", Envelope("own", 16))
	s.Submit("train", 24, s.By("lab:team"), InPods(8), InGroups(8), Elastic(8, 40, 8))
	s.paidBy("train", "lab:team/own", "lab:team/own", "lab/pool")
	s.EditBudget("lab:team", func(b *rqv1.Budget) { b.Spec.Envelopes[0].Concurrency = 32 })
	s.Edit("train", Desires(40))
	s.Says("train", rqv1.RunRunning, "grew to 40 GPUs")
	s.paidBy("train", "lab:team/own", "lab:team/own", "lab:team/own", "lab:team/own", "lab/pool")
	s.desiresLess()
	s.Uses("lab", rqv1.EnvelopeStatus{Name: "pool"})
}

// borrowedOfWhoLendsNoMore has a sponsor stop lending once it has lent: what it has lent comes back first all the same.
func borrowedOfWhoLendsNoMore(s *Teller) {
	s.Nodes("d0", 5)
	s.Fund("team", Envelope("own", 16))
	s.Fund("lender", Envelope("lent", 8, s.Lends(8, "team")))
	s.Submit("train", 24, s.By("team"), InPods(8), InGroups(8), Elastic(8, 40, 8), s.From("lender"))
	s.paidBy("train", "team/own", "team/own", "lender/lent")
	s.EditBudget("lender", func(b *rqv1.Budget) { b.Spec.Envelopes[0].Lending = nil })
	s.EditBudget("team", func(b *rqv1.Budget) { b.Spec.Envelopes[0].Concurrency = 32 })
	s.Edit("train", Desires(40))
	s.Says("train", rqv1.RunRunning, "grew to 40 GPUs")
	s.desiresLess()
	s.Uses("lender", rqv1.EnvelopeStatus{Name: "lent"})
}

// desiresLess has the Run want a step less.
func (s *Teller) desiresLess() {
	s.Edit("train", Desires(32))
	s.Says("train", rqv1.RunRunning, "shrunk to 32 GPUs")
	s.Ledger("train", Leases{Open: 4, "Repaid": 2, "Shrink": 1})
}

// makesRoom has a Run of somebody else be started at the cost of a step.
func (s *Teller) makesRoom() {
	s.Fund("other", Envelope("all", 8))
	s.Submit("other", 8, s.By("other"))
	s.Says("other", rqv1.RunRunning, "bound 8 GPUs")
}

// borrowedStays has the lower group lie where the owner's money does not pay: the sponsor goes on paying for it, and
// the group that the owner pays for goes first.
func borrowedStays(s *Teller) {
	s.Nodes("east", 2, Labelled("region", "us-east"))
	s.Fund("team", Envelope("own", 16, In("region", "us-west")))
	s.Fund("lender", Envelope("lent", 8, s.Lends(8, "team")))
	s.Submit("train", 8, s.By("team"), InPods(8), InGroups(8), Elastic(8, 16, 8), s.From("lender"))
	s.Says("train", rqv1.RunRunning, "bound 8 GPUs")
	s.paidBy("train", "lender/lent")
	s.Nodes("west", 1, Labelled("region", "us-west"))
	s.Edit("train", Desires(16))
	s.Says("train", rqv1.RunRunning, "grew to 16 GPUs")
	s.paidBy("train", "lender/lent", "team/own")
	s.Edit("train", Desires(8))
	s.Says("train", rqv1.RunRunning, "shrunk to 8 GPUs")
	s.Funded("train", 0, s.Pay("lender", 8, "sponsor"))
	s.Ledger("train", Leases{Open: 1, "Shrink": 1})
}

// paidBy waits until the ranks of a Run are paid for by these, in their order: OWNER/ENVELOPE.
func (s *Teller) paidBy(run string, want ...string) {
	s.T.Helper()
	s.Until("who pays for each rank of "+run, func() error {
		by := map[int]string{}
		for _, l := range s.World().LeasesOf(run) {
			if !l.Status.Closed {
				by[l.Index()] += s.payer(l)
			}
		}
		var got []string
		for _, rank := range slices.Sorted(maps.Keys(by)) {
			got = append(got, by[rank])
		}
		return differs(want, got)
	})
}
