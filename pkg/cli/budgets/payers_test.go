package budgets

import (
	"strings"
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// used is an envelope of which so many GPUs are in use.
func used(name string, concurrency, gpus int32) envelopeOf {
	return sized(name, concurrency, rqv1.EnvelopeStatus{OwnedGPUs: gpus, HeadroomGPUs: concurrency - gpus})
}

// refused is a Run that waits and was refused.
func refused(run rqv1.Run, r rqv1.RunRefusal) rqv1.Run {
	r.Owner = run.Spec.Owner
	run.Status.Refusal = &r
	return run
}

// asked is an envelope that was asked.
func asked(step int32, relation rqv1.Relation, owner rqv1.Owner, budget, envelope string, gpus int32,
	limit *rqv1.RefusalLimit, stops string) rqv1.RefusalPayer {
	return rqv1.RefusalPayer{Step: step, Relation: relation, Owner: owner, Budget: budget, Envelope: envelope, GPUs: gpus,
		Limit: limit, Stops: stops}
}

// aBorrower may borrow 8 GPUs from mm, needs 64 and has 24.
func aBorrower() rqv1.Run {
	return refused(clitest.RunOf("big", 64, 32, clitest.Waits("BorrowLimit",
		"borrow limit of 8 GPUs exhausted for requested width")), rqv1.RunRefusal{
		Reason: "BorrowLimit", WantedGPUs: 64, ShortGPUs: 40, Limit: &rqv1.RefusalLimit{Kind: "funding.maxBorrowGPUs", Max: 8,
			Left: 8},
		Payers: []rqv1.RefusalPayer{
			asked(1, rqv1.RelationOwn, "org:ai:rai", "rai", "night", 0, nil, "its window opens at 2030-01-02T20:00:00Z"),
			asked(1, rqv1.RelationOwn, "org:ai:rai", "rai", "west-h100", 8, &rqv1.RefusalLimit{Kind: "concurrency", Max: 64,
				Left: 12}, "concurrency: 12 of 64 GPUs left"),
			asked(3, rqv1.RelationAncestor, "org:ai", "ai", "reserve", 8, &rqv1.RefusalLimit{Kind: "concurrency", Max: 16,
				Left: 8}, "concurrency: 8 of 16 GPUs left"),
			asked(4, rqv1.RelationSponsor, "org:mm", "mm", "pool", 8, &rqv1.RefusalLimit{Kind: "funding.maxBorrowGPUs", Max: 8,
				Left: 8}, "funding.maxBorrowGPUs: 8 of 8 GPUs left"),
			asked(5, rqv1.RelationSponsor, "org:vision", "", "", 0, nil, "it does not lend to org:ai:rai"),
		},
		Changes: []rqv1.RefusalChange{
			{What: "raise envelopes[west-h100].concurrency of Budget rai from 64 to 100", GPUs: 64},
			{What: "wait until 2030-01-02T20:00:00Z, when a window opens", GPUs: 64},
			{What: "raise spec.funding.maxBorrowGPUs of the Run from 8 to 24", GPUs: 40},
		},
	})
}

// itsBudgets are those that the borrower's payers are envelopes of.
func itsBudgets() []rqv1.Budget {
	own, night := used("west-h100", 64, 52), used("night", 64, 0)
	own.Selector = map[string]string{"region": "us-west", "cluster": "*"}
	night.Start = clitest.Ptr(clitest.After(8 * time.Hour))
	return []rqv1.Budget{budgetOf("ai", "org:ai", used("reserve", 16, 8)),
		budgetOf("mm", "org:mm", used("pool", 64, 0), used("closed", 8, 0)),
		budgetOf("rai", "org:ai:rai", own, night)}
}

func TestPayers(t *testing.T) {
	own := []rqv1.Budget{budgetOf("rai", "org:ai:rai", used("west-h100", 64, 8), used("more", 8, 0))}
	trainer := clitest.RunOf("trainer", 16, 0, clitest.Runs(16))
	gone := clitest.LeaseOf(&trainer, "trainer-1", 0, "a2")
	gone.Spec.PaidByEnvelope = "removed"
	room := refused(clitest.RunOf("roomless", 16, 0, clitest.Waits("InsufficientGPUs", "short by 8 of 16 GPUs")),
		rqv1.RunRefusal{Reason: "InsufficientGPUs", WantedGPUs: 16, ShortGPUs: 8,
			Payers: []rqv1.RefusalPayer{asked(1, rqv1.RelationOwn, "org:ai:rai", "rai", "west-h100", 16, nil, ""),
				asked(1, rqv1.RelationOwn, "org:ai:rai", "rai", "more", 0, nil, "")}})
	nobody := refused(clitest.RunOf("poor", 16, 0, clitest.Waits("NoBudget", "no Budget of owner org:ai:rai")),
		rqv1.RunRefusal{Reason: "NoBudget", WantedGPUs: 16, ShortGPUs: 16,
			Changes: []rqv1.RefusalChange{
				{What: "ask an administrator for a Budget of org:ai:rai with an envelope of flavor H100-80GB and " +
					"concurrency 16", GPUs: 16}}})
	for name, c := range map[string]struct {
		run     rqv1.Run
		leases  []rqv1.Lease
		budgets []rqv1.Budget
	}{
		"payers-borrow":  {aBorrower(), nil, itsBudgets()},
		"payers-running": {trainer, []rqv1.Lease{clitest.LeaseOf(&trainer, "trainer-0", 0, "a1"), gone}, own},
		"payers-room":    {room, nil, own},
		"payers-nobody":  {nobody, nil, own},
		"payers-new":     {clitest.RunOf("new", 16, 0, rqv1.RunStatus{}), nil, own},
		"payers-ended":   {clitest.RunOf("ended", 16, 0, rqv1.RunStatus{Phase: rqv1.RunCompleted}), nil, own},
	} {
		a := payersOf(&c.run, c.leases, c.budgets)
		if name == "payers-nobody" {
			a.Unread = []string{`GPU leases, which say what is paid for now: User "bob" cannot list resource "leases"`}
		}
		var text strings.Builder
		if err := writePayers(&text, a, session.Form{Wide: name == "payers-running"}); err != nil {
			t.Fatal(err)
		}
		clitest.Golden(t, name, text.String())
	}
	run := aBorrower()
	var text strings.Builder
	if err := clitest.InFormat("json", &text, payersOf(&run, nil, itsBudgets())); err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, "payers-json", text.String())
}
