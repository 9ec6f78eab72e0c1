package dashboard

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// TestTheGravestRiskComesFirst: a page says first of a Run what the command line says of it.
func TestTheGravestRiskComesFirst(t *testing.T) {
	run := clitest.RunOf("train", 16, 0, clitest.Runs(16))
	of := func(by, probability string, cut rqv1.RiskCut) rqv1.RunRisk {
		cut.Probability = probability
		return rqv1.RunRisk{Reservation: "x/" + by, At: clitest.After(2 * time.Hour), Probability: probability,
			Cuts: []rqv1.RiskCut{cut}}
	}
	run.Status.AtRisk = []rqv1.RunRisk{of("shrinks", "1", rqv1.RiskCut{Action: rqv1.CutShrink, Width: 8}),
		of("ends", "0.25", rqv1.RiskCut{Action: rqv1.CutLottery})}
	run.Status.AtRiskTotal = 5
	now := clitest.Noon.Add(time.Hour)
	row := rowOfRun(&run, now)
	var order []string
	for _, r := range row.Risks {
		order = append(order, r.Reservation)
	}
	if diff := cmp.Diff([]string{"x/ends", "x/shrinks"}, order); diff != "" || row.MoreRisks != 3 {
		t.Errorf("%d more, (-want +got):\n%s", row.MoreRisks, diff)
	}
	if said := view.RiskOf(&run, now); said != "25 % risk of being ended at 14:00 (in 60m), and 4 more risks" {
		t.Errorf("the command line says: %s", said)
	}
	if run.Status.AtRisk[0].Reservation != "x/shrinks" {
		t.Error("what is kept of the Run has been changed")
	}
}
