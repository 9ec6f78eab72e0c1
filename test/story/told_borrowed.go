package story

import (
	"maps"
	"slices"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// borrowedStories are of Runs that have grown on their own money above groups that a sponsor pays for.
func borrowedStories() []Story {
	return []Story{
		{Name: "borrowed-stays-where-own-does-not-pay", Play: borrowedStays},
	}
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
