package resize

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// elasticRun has 128 GPUs of 96 to 160 by steps of 32, and desires as many.
func elasticRun(edit func(*rqv1.Run)) *rqv1.Run {
	run := clitest.RunOf("trainer", 96, 32, clitest.Runs(128))
	run.Status.Width.Granted = 128
	run.Spec.Malleable = &rqv1.RunMalleable{MinTotalGPUs: 96, MaxTotalGPUs: 160, StepGPUs: 32,
		DesiredTotalGPUs: clitest.Ptr[int32](128)}
	if edit != nil {
		edit(&run)
	}
	return &run
}

// TestNewWidths asks for widths that a Run may have, and for others: what is refused names field, rule and fix.
func TestNewWidths(t *testing.T) {
	waiting := elasticRun(func(r *rqv1.Run) { r.Status = rqv1.RunStatus{} })
	unsaid := elasticRun(func(r *rqv1.Run) { r.Spec.Malleable.DesiredTotalGPUs = nil })
	grow, shrink := resize{wider: true}, resize{}
	var text strings.Builder
	for _, ask := range []struct {
		what   string
		resize resize
		by, to int32
		run    *rqv1.Run
	}{
		{"grow to 160", grow, 0, 160, elasticRun(nil)},
		{"grow by 32", grow, 32, 0, elasticRun(nil)},
		{"grow to what it desires", grow, 0, 128, elasticRun(nil)},
		{"grow above the most", grow, 64, 0, elasticRun(nil)},
		{"grow to less", grow, 0, 96, elasticRun(nil)},
		{"grow off the steps", grow, 8, 0, elasticRun(nil)},
		{"grow a Run that desires the most", grow, 32, 0, unsaid},
		{"shrink by 32", shrink, 32, 0, elasticRun(nil)},
		{"shrink a Run that desires more than it has", shrink, 32, 0, unsaid},
		{"shrink a Run that waits to its least", shrink, 0, 96, waiting},
		{"shrink a Run that waits by 32", shrink, 32, 0, waiting},
		{"shrink below the least", shrink, 0, 64, elasticRun(nil)},
		{"shrink off the steps", shrink, 0, 100, elasticRun(nil)},
		{"shrink to more", shrink, 0, 160, elasticRun(nil)},
		{"a fixed Run", shrink, 32, 0, elasticRun(func(r *rqv1.Run) { r.Spec.Malleable = nil })},
		{"a Run that has ended", grow, 32, 0, elasticRun(func(r *rqv1.Run) { r.Status.Phase = rqv1.RunFailed })},
	} {
		ask.resize.by, ask.resize.to = ask.by, ask.to
		to, err := ask.resize.newWidth(ask.run)
		var failed *session.Failure
		switch {
		case errors.As(err, &failed):
			fmt.Fprintf(&text, "%s: exit %d: %s\n", ask.what, failed.Code, failed.Message)
		default:
			fmt.Fprintf(&text, "%s: %d\n", ask.what, to)
		}
	}
	clitest.Golden(t, "resize", text.String())
}
