package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/printers"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// A program gets a Run as the API has it, on one line, with what was seen of its GPU leases; also when only these have changed.
func TestSightings(t *testing.T) {
	var text strings.Builder
	f := reporting(t, nil)
	f.r.print = func(run *rqv1.Run, seen sighting) error {
		return printSighting(onOneLine(&printers.JSONPrinter{}), &text, run, seen)
	}
	run := runOf("guarded", 64, 32, runs(64))
	open := guarded(&run)
	f.r.begin(open)
	f.run(run)
	f.flush()
	f.leases(closed(open[8], time.Hour, rqv1.ClosedSwap), closed(open[1], time.Hour, rqv1.ClosedNodeFailure),
		since(as(leaseOf(&run, "new-1", 0, "s0"), rqv1.RoleActive, 1), time.Hour, rqv1.ReasonSwap))
	f.flush()
	f.r.gone(&run, f.next())
	f.flush()
	for line := range strings.Lines(text.String()) {
		var read rqv1.Run
		if err := json.Unmarshal([]byte(line), &read); err != nil || read.Kind != "Run" || read.Status.Width.Allocated != 64 {
			t.Errorf("no Run on a line (%v): %s", err, line)
		}
	}
	golden(t, "watch-json", text.String())
}
