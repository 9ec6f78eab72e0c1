package watch

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/printers"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
)

// A program gets a Run as the API has it, on one line, with what was seen of its GPU leases; also when only these
// have changed.
func TestSightings(t *testing.T) {
	var text strings.Builder
	f := reporting(t, nil)
	f.r.print = func(run *rqv1.Run, seen sighting) error {
		return printSighting(onOneLine(&printers.JSONPrinter{}), &text, run, seen)
	}
	run := clitest.RunOf("guarded", 64, 32, clitest.Runs(64))
	open := clitest.Guarded(&run)
	f.r.begin(open)
	f.run(run)
	f.flush()
	f.leases(clitest.Closed(open[8], time.Hour, rqv1.ClosedSwap), clitest.Closed(open[1], time.Hour,
		rqv1.ClosedNodeFailure),
		clitest.Since(clitest.As(clitest.LeaseOf(&run, "new-1", 0, "s0"), rqv1.RoleActive, 1), time.Hour, rqv1.ReasonSwap))
	f.flush()
	f.r.gone(&run, f.next())
	f.flush()
	for line := range strings.Lines(text.String()) {
		var read rqv1.Run
		if err := json.Unmarshal([]byte(line), &read); err != nil || read.Kind != "Run" || read.Status.Width.Allocated != 64 {
			t.Errorf("no Run on a line (%v): %s", err, line)
		}
	}
	clitest.Golden(t, "watch-json", text.String())
}
