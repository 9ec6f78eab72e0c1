// Package logs is "kubectl runs logs".
package logs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/ranks"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// mostFollowed is how many ranks are followed at a time, since each takes a connection.
const mostFollowed = 256

// logs is one "kubectl runs logs".
type logs struct {
	*session.Session
	words      []string // of --rank
	all        bool
	follow     bool
	previous   bool
	timestamps bool
	tail       int64
	since      time.Duration
	container  string

	config  *rest.Config
	several bool // ranks are shown, so that each line says which
	// lookEvery is how long a Run that has not started is left alone before it is looked at again.
	lookEvery time.Duration
}

// Command returns "kubectl runs logs".
func Command(s *session.Session) *cobra.Command {
	return (&logs{Session: s, lookEvery: time.Second}).command()
}

func (l *logs) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:        "logs RUN",
		SuggestFor: []string{"log", "output", "attach"},
		Short:      "Show what the ranks of a Run print",
		Long: `Show what a rank of a Run prints: the rank that --rank names, else the rank that failed first, else rank 0.
Standard error says which rank is shown and why; standard output has only what the rank prints.

With --all or several ranks, each line begins with the rank.

When a rank is replaced or started again in a new pod, the logs of the old pod are lost. If a container was restarted in
the same pod, --previous shows the logs of the previous container.

With -f, the command waits for a Run that has not started yet.

You need the right to get pods/log, which the role jobtree-researcher has.`,
		Example: `  # What a Run prints from now on, or what made it fail
  kubectl runs logs hello -f

  # The last lines of all ranks
  kubectl runs logs hello --all --tail 5

  # Ranks 0 to 7, and 12
  kubectl runs logs hello --rank 0-7,12`,
		Args:              session.RunNames(1, 1),
		RunE:              l.OnRuns(l.run),
		ValidArgsFunction: l.CompleteRuns,
	}
	cmd.Flags().StringSliceVar(&l.words, "rank", nil, "The ranks to show, such as 3 or 0-7,12.")
	cmd.Flags().BoolVar(&l.all, "all", false, "Show all ranks.")
	cmd.Flags().BoolVarP(&l.follow, "follow", "f", false, "Keep running, and show what is printed from now on.")
	cmd.Flags().BoolVarP(&l.previous, "previous", "p", false, "Show what the container before the last restart printed.")
	cmd.Flags().BoolVar(&l.timestamps, "timestamps", false, "Begin each line with the time at which it was printed.")
	cmd.Flags().Int64Var(&l.tail, "tail", -1, "Show this many of the last lines; -1 shows all.")
	session.DurationVar(cmd.Flags(), &l.since, "since", 0,
		"Show what was printed in this last period, such as 10m or 1d; 0 shows all.")
	cmd.Flags().StringVarP(&l.container, "container", "c", "", "The container to show, if it is not the first.")
	cmd.MarkFlagsMutuallyExclusive("all", "rank")
	return cmd
}

func (l *logs) run(ctx context.Context, names []string) error {
	wanted, err := ranks.Parse(l.words)
	switch {
	case err != nil:
		return err
	case l.follow && l.previous:
		return session.Fail(session.ExitUsage, "--previous shows what has ended: leave out -f")
	case l.tail < -1 || l.since < 0:
		return session.Fail(session.ExitUsage, "--tail and --since must not be negative")
	}
	c, namespace, _, err := l.Connect()
	if err != nil {
		return err
	}
	if l.config, err = l.RESTConfig(); err != nil {
		return err
	}
	sources, err := l.sources(ctx, c, client.ObjectKey{Namespace: namespace, Name: names[0]}, wanted)
	if len(sources) == 0 {
		return err
	}
	return errors.Join(err, l.print(ctx, sources))
}

// sources finds the pods whose logs are meant, and waits until one of them has started if they are to be followed. It
// says of each rank that has none why.
func (l *logs) sources(ctx context.Context, c client.Client, key client.ObjectKey, wanted []int) ([]source, error) {
	for told := false; ; told = true {
		var run rqv1.Run
		if err := c.Get(ctx, key, &run); err != nil {
			return nil, l.NotFoundInWords(err, key.Namespace, key.Name)
		}
		set, err := ranks.Read(ctx, c, &run)
		if err != nil {
			return nil, err
		}
		sources, waits, err := l.choose(set, wanted)
		if len(sources) > 0 || !l.follow || run.Ended() || waits == "" {
			return sources, err
		}
		if !told {
			fmt.Fprintf(l.ErrOut, "%s; waiting\n", waits)
		}
		select {
		case <-time.After(l.lookEvery):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
