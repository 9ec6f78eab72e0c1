// Package saved is "kubectl runs checkpointed".
package saved

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// saved is one "kubectl runs checkpointed".
type saved struct {
	*session.Session
	at   string
	done bool
}

// Command returns "kubectl runs checkpointed".
func Command(s *session.Session) *cobra.Command {
	l := &saved{Session: s}
	cmd := &cobra.Command{
		Use:   "checkpointed RUN",
		Short: "Record that a Run has saved its work",
		Long: `Record that a Run has saved its work, and when. Lost work is counted from that time. It does not affect which
Runs are cut. With --take-me, the Run's pods are ended at once when they have to go, because they need no notice.

A program can do the same from inside its pod, with the annotations rq.davidlangworthy.io/saved-at and
rq.davidlangworthy.io/take-me on its Run, or on its own pod for its rank alone.`,
		Example: `  # From a script that has copied the last checkpoint
  kubectl runs checkpointed trainer

  # It was saved at another time
  kubectl runs checkpointed trainer --at 2026-01-31T10:00:00Z`,
		Args:              session.RunNames(1, 1),
		RunE:              s.OnRuns(l.run),
		ValidArgsFunction: s.CompleteRuns,
	}
	cmd.Flags().StringVar(&l.at, "at", "", "When it was saved, such as 2026-01-31T10:00:00Z; by default now.")
	cmd.Flags().BoolVar(&l.done, "take-me", false, "Its pods may be ended without notice from now on.")
	return cmd
}

func (l *saved) run(ctx context.Context, names []string) error {
	at := l.Now()
	if l.at != "" {
		var err error
		if at, err = time.Parse(time.RFC3339, l.at); err != nil {
			return session.Fail(session.ExitUsage, "--at must be a time such as 2026-01-31T10:00:00Z, not %q", l.at)
		}
		if at.After(l.Now()) {
			return session.Fail(session.ExitUsage, "--at %s is in the future: say when it was saved", l.at)
		}
	}
	c, namespace, _, err := l.Connect()
	if err != nil {
		return err
	}
	word := at.UTC().Format(time.RFC3339)
	says := map[string]string{rqv1.AnnotationSavedAt: word}
	if l.done {
		says[rqv1.AnnotationTakeMe] = "true"
	}
	run := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: names[0]}}
	change := map[string]any{"metadata": map[string]any{"annotations": says}}
	if err := session.Merge(ctx, c, run, change); err != nil {
		return l.NotFoundInWords(err, namespace, names[0])
	}
	fmt.Fprintf(l.Out, "Run %s saved its work at %s\n", l.Called(names[0]), session.ClockToSecond(at, l.Now()))
	return nil
}
