package submit

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

const (
	// lookEvery is how often a Run is looked at that is waited for.
	lookEvery = 50 * time.Millisecond
	// datedWithin is how long after a refusal a date may come that belongs to it.
	datedWithin = 300 * time.Millisecond
	// mostTold is of how many Runs the scheduler's word is waited for and told.
	mostTold = 10
)

// tellVerdicts says on standard error what the scheduler has made of the Runs that were created, as far as it has by
// then.
func (s *submission) tellVerdicts(ctx context.Context, c client.Client, created []*unstructured.Unstructured) {
	if s.dryRun != "none" || s.wait <= 0 {
		return
	}
	runs := slices.DeleteFunc(slices.Clone(created), func(o *unstructured.Unstructured) bool { return !isRun(o) })
	ctx, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	for i, object := range runs {
		if i == mostTold {
			fmt.Fprintf(s.ErrOut, "%s more; see \"kubectl runs list\"\n", view.Counted(len(runs)-i, "Run"))
			return
		}
		run := s.decided(ctx, c, client.ObjectKeyFromObject(object))
		fmt.Fprintln(s.ErrOut, printers.EscapeTerminal(session.LocalTimes(verdict(&run, object.GetName(), s.Now()), s.Now())))
	}
}

// decided waits until the scheduler has decided about a Run, and returns the Run as it was seen last.
func (s *submission) decided(ctx context.Context, c client.Client, key client.ObjectKey) (run rqv1.Run) {
	var refused time.Time
	_ = wait.PollUntilContextCancel(ctx, lookEvery, true, func(ctx context.Context) (bool, error) {
		var is rqv1.Run
		if err := c.Get(ctx, key, &is); err != nil {
			return false, client.IgnoreNotFound(err) // whatever it is, the Run has been created: that has been said
		}
		run = is
		switch w := view.WaitOf(&run, s.Now()); {
		case !view.LookedAt(&run) || w != nil && (w.Reason == "" || w.Reason == "Waiting"):
			return false, nil
		case w == nil || w.EarliestStart != nil || w.Queue != nil:
			return true, nil
		case refused.IsZero():
			refused = time.Now()
		}
		return time.Since(refused) > datedWithin, nil
	})
	return run
}

// verdict says what the scheduler has made of a Run.
func verdict(run *rqv1.Run, name string, now time.Time) string {
	w := view.WaitOf(run, now)
	switch {
	case !view.LookedAt(run) || w != nil && (w.Reason == "" || w.Reason == "Waiting"):
		return fmt.Sprintf("Run %s: the scheduler has not decided yet", name)
	case w == nil && view.PhaseOf(run) == rqv1.RunRunning:
		return fmt.Sprintf("Run %s runs, with %s GPUs", name, view.WidthOf(run))
	case w == nil:
		return fmt.Sprintf("Run %s is %s: %s", name, view.PhaseOf(run), run.Status.Message)
	}
	text := fmt.Sprintf("Run %s waits: %s", name, w.Message)
	if start := view.StartOf(run, now); start != "" {
		text += "; it starts " + start
	}
	return text
}
