package leases

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

func TestCSV(t *testing.T) {
	run := clitest.RunOf("trainer", 16, 0, clitest.Runs(16))
	split := clitest.LeaseOf(&run, "trainer-split", 1, "b1")
	split.Spec.Slice.Nodes = append(split.Spec.Slice.Nodes, rqv1.NodeGPUs{Name: "b2", GPUs: 4})
	split.Spec.Payer = rqv1.LeasePayer{Budget: "mm", Owner: "org:ai:mm", Relation: rqv1.RelationSibling}
	spare := clitest.LeaseOf(&run, "trainer-spare", 0, "a2")
	spare.Spec.Slice.Role, spare.Spec.Payer.Rate = rqv1.RoleSpare, "0.333"
	list := []rqv1.Lease{clitest.LeaseOf(&run, "trainer-0", 0, "a1"), clitest.Closed(spare, time.Second, rqv1.ClosedSwap),
		clitest.Closed(split, 90*time.Minute, rqv1.ClosedCompleted)}
	var text strings.Builder
	if err := writeCSV(&text, list, clitest.Noon.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, "leases-csv", text.String())
}

func TestChargeOf(t *testing.T) {
	run := clitest.RunOf("trainer", 8, 0, clitest.Runs(8))
	lease := clitest.LeaseOf(&run, "trainer-0", 0, "a1")
	for now, want := range map[time.Duration]string{
		0:                          "0.000", // the GPU lease starts in the future of this clock
		11 * time.Second:           "8.000",
		12*time.Second - 1:         "8.000",
		12*time.Second + 1:         "16.000",
		time.Hour + 10*time.Second: "28800.000",
	} {
		c, err := view.ChargeOf(&lease, clitest.Noon.Add(now))
		if err != nil {
			t.Fatal(err)
		}
		if got := gpuSeconds(c.Spend); got != want {
			t.Errorf("after %v it is charged %s GPU-seconds, want %s", now, got, want)
		}
	}
	lease.Spec.Payer.Rate = "1.5"
	if _, err := view.ChargeOf(&lease, clitest.Noon); err == nil {
		t.Error("a rate beyond the full one is charged")
	}
}

func TestSince(t *testing.T) {
	for text, want := range map[string]time.Time{
		"":                     {},
		"90m":                  clitest.Noon.Add(-90 * time.Minute),
		"30d":                  clitest.Noon.AddDate(0, 0, -30),
		"2030-01-01":           time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC),
		"2030-01-01T10:00:00Z": time.Date(2030, 1, 1, 10, 0, 0, 0, time.UTC),
	} {
		got, err := session.ParseSince(text, clitest.Noon)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	for _, text := range []string{"yesterday", "-1h", "1.5d", "2030-13-01"} {
		if got, err := session.ParseSince(text, clitest.Noon); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
	run := clitest.RunOf("trainer", 8, 0, clitest.Runs(8))
	open := clitest.LeaseOf(&run, "trainer-0", 0, "a1")
	ended := clitest.Closed(open, time.Hour, rqv1.ClosedCompleted)
	ended.Status.Ended = clitest.Ptr(metav1.NewMicroTime(clitest.Noon.Add(time.Hour)))
	for lease, want := range map[*rqv1.Lease][2]bool{&open: {true, true}, &ended: {true, false}} {
		got := [2]bool{openSince(lease, clitest.Noon), openSince(lease, clitest.Noon.Add(time.Hour))}
		if got != want {
			t.Errorf("a GPU lease with status %+v was open at noon, and an hour later: %v, want %v", lease.Status, got, want)
		}
	}
}
