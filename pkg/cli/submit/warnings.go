package submit

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/world"
	"github.com/davidlangworthy/jobtree/pkg/config"
)

// unprotected is said of Runs that are lost if they are drawn.
const unprotected = "sets neither runtime.checkpoint nor runtime.maxDuration: if the lottery draws it to make room " +
	"for another Run, it fails and does not start again; if it saves its work, set runtime.checkpoint"

// foretell says on standard error what whoever has submitted Runs would rather have known: that they leave parts of
// nodes unused, what their spares come to, or that they are lost if they are cut. Nothing is said where the scheduler
// has not published what that depends on.
func (s *submission) foretell(ctx context.Context, c client.Client, created []*unstructured.Unstructured) {
	if s.dryRun == "client" {
		return
	}
	args, fleet, err := world.Published(ctx, c)
	if err != nil || args == nil {
		return
	}
	var lost []string
	for _, object := range created {
		var run rqv1.Run
		if !isRun(object) ||
			runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &run) != nil {
			continue
		}
		for _, text := range world.Remarks(&run, fleet, args) {
			fmt.Fprintf(s.ErrOut, "Warning: Run %s: %s\n", run.Name, printers.EscapeTerminal(text))
		}
		if t := run.Spec.Runtime; !run.Spec.Opportunistic && (t == nil || t.Checkpoint == nil && t.MaxDuration == nil) {
			lost = append(lost, run.Name)
		}
	}
	if len(lost) == 0 || args.Lottery == config.LotteryNone {
		return
	}
	which := "Run " + lost[0]
	if more := len(lost) - 1; more > 0 {
		which += fmt.Sprintf(" (and %d more)", more)
	}
	fmt.Fprintf(s.ErrOut, "Warning: %s %s\n", which, unprotected)
}
