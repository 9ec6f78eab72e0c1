package list

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

func TestRunTable(t *testing.T) {
	borrowing := clitest.Runs(48)
	borrowing.Funding = &rqv1.RunFundingStatus{OwnedGPUs: 16, BorrowedGPUs: 32,
		Sponsors: []rqv1.RunSponsor{{Owner: "org:ai:mm", GPUs: 32, Relation: "sponsor"}}}
	dated := clitest.RunOf("dated", 64, 32, clitest.Waits("InsufficientGPUs", "short by 8 GPUs"))
	dated.Status.EarliestStart = clitest.Ptr(clitest.After(16 * time.Minute))
	borrowing.AtRisk = []rqv1.RunRisk{
		{Reservation: "mm/later-r0", At: clitest.After(time.Hour), Probability: "0.125",
			Cuts: []rqv1.RiskCut{{Action: rqv1.CutLottery, GPUs: 48, Probability: "0.125"}}},
		{Reservation: "mm/big-r0", At: clitest.After(16 * time.Minute), Probability: "0.125",
			Cuts: []rqv1.RiskCut{{Action: rqv1.CutLottery, GPUs: 48, Probability: "0.125"}}},
		{Reservation: "mm/tiny-r0", At: clitest.After(2 * time.Minute), Probability: "1",
			Cuts: []rqv1.RiskCut{{Action: rqv1.CutDropSpare, GPUs: 4, Probability: "1"}}},
	}
	grows := clitest.RunOf("grows", 96, 32, clitest.Runs(96))
	grows.Spec.PriorityClassName, grows.Status.Priority = "hero", clitest.Ptr[int32](2000000)
	grows.UID, grows.Spec.SparesPerGroup = "grows", clitest.Ptr[int32](4)
	grows.Status.Width.Desired, grows.Status.Width.Pending = 160, "Grow to 128"
	grows.Status.Conditions = append(grows.Status.Conditions, metav1.Condition{Type: rqv1.ConditionMaintenanceAhead,
		Status: metav1.ConditionTrue, Message: "maintenance is planned for nodes of the Run; n1 n2: maintenance from " +
			"2030-01-02T15:00:00Z on"})
	grows.Status.AtRisk = []rqv1.RunRisk{{Reservation: "mm/big-r0", At: clitest.After(26 * time.Hour), Probability: "1",
		Cuts: []rqv1.RiskCut{{Action: rqv1.CutShrink, GPUs: 32, Width: 64, Probability: "1"}}}}
	list := []rqv1.Run{
		clitest.RunOf("new", 8, 0, rqv1.RunStatus{}),
		grows,
		clitest.RunOf("borrows", 48, 16, borrowing),
		clitest.RunOf("waits", 64, 32, clitest.Waits("InsufficientGPUs", "short by 8 GPUs")),
		dated,
	}
	for name, wide := range map[string]bool{"runs": false, "runs-wide": true} {
		var text strings.Builder
		table := runTable(list, map[types.UID]int32{"grows": 8}, wide, clitest.Noon.Add(90*time.Second))
		if err := session.PrintTable(table, &text, wide, wide); err != nil {
			t.Fatal(err)
		}
		clitest.Golden(t, name, text.String())
	}
}

func TestStandingBy(t *testing.T) {
	spares := func(status rqv1.RunStatus) *rqv1.Run {
		run := clitest.RunOf("grows", 96, 32, status)
		run.Spec.Spares = clitest.Ptr[int32](4)
		return &run
	}
	for want, got := range map[string]string{
		"8/12": standingBy(spares(clitest.Runs(96)), map[types.UID]int32{"grows-uid": 8}),
		"0/8":  standingBy(spares(clitest.Runs(64)), map[types.UID]int32{}),
		"?/12": standingBy(spares(rqv1.RunStatus{}), nil),
		"":     standingBy(spares(rqv1.RunStatus{Phase: rqv1.RunCompleted}), map[types.UID]int32{}),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
