package submit

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/world"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// unprotected is said of Runs that are lost if they are drawn.
const unprotected = "sets neither runtime.checkpoint nor runtime.maxDuration: if the lottery draws it to make room " +
	"for another Run, it fails and does not start again; if it saves its work, set runtime.checkpoint"

// foretell says on standard error what whoever has submitted Runs would rather have known: that they leave parts of
// nodes unused, or are lost if they are cut. Nothing is said where the scheduler has not published what that depends
// on.
func (s *submission) foretell(ctx context.Context, c client.Client, created []*unstructured.Unstructured) {
	if s.dryRun == "client" {
		return
	}
	var lost []string
	sizes := sync.OnceValue(func() map[string]int {
		known, _ := world.NodeGPUs(ctx, c)
		return known
	})
	for _, object := range created {
		var run rqv1.Run
		if !isRun(object) ||
			runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &run) != nil {
			continue
		}
		name := run.Name
		if text := stranded(&run, sizes()); text != "" {
			fmt.Fprintf(s.ErrOut, "Warning: Run %s: %s\n", name, printers.EscapeTerminal(text))
		}
		if t := run.Spec.Runtime; !run.Spec.Opportunistic && (t == nil || t.Checkpoint == nil && t.MaxDuration == nil) {
			lost = append(lost, name)
		}
	}
	if len(lost) == 0 {
		return
	}
	args, guessed, err := world.SchedulerArgs(ctx, c)
	if err != nil || guessed != "" || args.Lottery == config.LotteryNone {
		return
	}
	which := "Run " + lost[0]
	if more := len(lost) - 1; more > 0 {
		which += fmt.Sprintf(" (and %d more)", more)
	}
	fmt.Fprintf(s.ErrOut, "Warning: %s %s\n", which, unprotected)
}

// stranded says what a Run leaves unused of nodes, by the GPUs that nodes of each type have. Whoever asks for GPUs in a
// template has chosen the size of pods.
func stranded(run *rqv1.Run, sizes map[string]int) string {
	if run.Spec.Template != nil {
		for i := range run.Spec.Template.Spec.Containers {
			for name := range run.Spec.Template.Spec.Containers[i].Resources.Limits {
				if strings.Contains(string(name), "/") {
					return ""
				}
			}
		}
	}
	size := sizes[run.Spec.Resources.GPUType]
	d, refusal := plan.DemandOf(&run.Spec, 0, size)
	if refusal != nil {
		return ""
	}
	return plan.Stranded(&run.Spec, d, size)
}
