package leases

import (
	"strings"
	"testing"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

func TestLeaseTable(t *testing.T) {
	run := clitest.RunOf("trainer", 16, 0, clitest.Runs(16))
	lent := clitest.Closed(clitest.LeaseOf(&run, "trainer-1", 1, "b1"), 30*time.Minute, rqv1.ClosedNodeFailure)
	lent.Spec.Payer = rqv1.LeasePayer{Budget: "mm", Owner: "org:ai:mm", Relation: rqv1.RelationSponsor, Rate: "0.5"}
	list := []rqv1.Lease{clitest.LeaseOf(&run, "trainer-0", 0, "a1"), lent}
	for name, wide := range map[string]bool{"leases": false, "leases-wide": true} {
		var text strings.Builder
		table, err := leaseTable(list, clitest.Noon.Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if err := session.PrintTable(table, &text, wide, false); err != nil {
			t.Fatal(err)
		}
		clitest.Golden(t, name, text.String())
	}
}

func TestSummaryTable(t *testing.T) {
	run := clitest.RunOf("trainer", 16, 0, clitest.Runs(16))
	lent := clitest.Closed(clitest.LeaseOf(&run, "trainer-1", 1, "b1"), 30*time.Minute, rqv1.ClosedNodeFailure)
	lent.Spec.Payer = rqv1.LeasePayer{Budget: "mm", Owner: "org:ai:mm", Relation: rqv1.RelationSponsor, Rate: "0.5"}
	moved := clitest.Closed(clitest.LeaseOf(&run, "trainer-2", 1, "b2"), 10*time.Minute, rqv1.ClosedMaintenance)
	moved.Spec.Payer = lent.Spec.Payer
	again := run
	again.UID = "of the one before"
	list := []rqv1.Lease{clitest.LeaseOf(&run, "trainer-0", 0, "a1"), clitest.LeaseOf(&run, "trainer-3", 0, "a2"), lent,
		moved, clitest.Closed(clitest.LeaseOf(&again, "trainer-0", 0, "a1"), time.Second, rqv1.ClosedDeleted)}
	table, err := summaryTable(list, clitest.Noon.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := session.PrintTable(table, &text, false, false); err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, "summary", text.String())
}
