package maintenance

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/outage"
)

// setter is one "kubectl runs maintenance set".
type setter struct {
	*session.Session
	choice     choice
	start, end string
	during     time.Duration
}

func setCommand(s *session.Session) *cobra.Command {
	l := &setter{Session: s}
	cmd := &cobra.Command{
		Use:   "set [NODE...] --start TIME (--end TIME | --for DURATION)",
		Short: "Announce when maintenance of nodes starts and ends",
		Long: `Announce when maintenance of nodes starts and ends. This replaces earlier announcements for these nodes.

It prints what this takes out of use: how many GPUs, for whom and from when, and which Runs are there now.

--start is a time (RFC 3339) or a duration from now; 0s is now. Without --end or --for the end is unknown, and the nodes
stay out of use until "kubectl runs maintenance cancel".

You need the right to patch nodes.`,
		Example: `  # A rack goes down in an hour, for two hours
  kubectl runs maintenance set -l topology.rack=r7 --start 1h --for 2h

  # One node, on a date
  kubectl runs maintenance set n17 --start 2030-01-02T15:00:00Z --end 2030-01-02T18:00:00Z`,
		RunE: s.RunE(l.run),
	}
	l.choice.addTo(cmd)
	cmd.Flags().StringVar(&l.start, "start", "", "When it starts: RFC 3339, or a duration from now.")
	cmd.Flags().StringVar(&l.end, "end", "", "When it ends: RFC 3339, or a duration from now.")
	session.DurationVar(cmd.Flags(), &l.during, "for", 0, "How long it takes, such as 4h or 2d.")
	return cmd
}

// window returns what the flags say.
func (l *setter) window(now time.Time) (w outage.Window, err error) {
	switch {
	case l.start == "":
		return w, session.Fail(session.ExitUsage, "set --start to the time when the maintenance starts")
	case l.end != "" && l.during != 0:
		return w, session.Fail(session.ExitUsage, "use either --end or --for to say when the maintenance ends, not both")
	case l.during < 0:
		return w, session.Fail(session.ExitUsage, "--for is %s; say how long the maintenance takes", l.during)
	}
	if w.Start, err = instant("--start", l.start, now); err != nil {
		return w, err
	}
	switch {
	case l.during > 0:
		w.End = w.Start.Add(l.during)
	case l.end != "":
		if w.End, err = instant("--end", l.end, now); err != nil {
			return w, err
		}
	}
	switch {
	case !w.End.IsZero() && !w.End.After(w.Start):
		return w, session.Fail(session.ExitUsage, "--end is %s, which is not after --start, %s", w.End.Format(time.RFC3339),
			w.Start.Format(time.RFC3339))
	case w.Over(now):
		return w, session.Fail(session.ExitUsage, "the maintenance would be over already, since %s; set a later end",
			w.End.Format(time.RFC3339))
	}
	return w, nil
}

// instant reads a time, in whole seconds.
func instant(flag, value string, now time.Time) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		in, err := rqv1.ParseDuration(value)
		if err != nil {
			return at, session.Fail(session.ExitUsage,
				"%s is %q: write a time as 2030-01-02T15:00:00Z, or a duration from now as 90m or 3d", flag, value)
		}
		at = now.Add(in)
	}
	return at.UTC().Truncate(time.Second), nil
}

func (l *setter) run(ctx context.Context, names []string) error {
	w, err := l.window(l.Now())
	if err != nil {
		return err
	}
	c, _, _, err := l.Connect()
	if err != nil {
		return err
	}
	nodes, err := l.choice.nodes(ctx, c, names)
	if err != nil {
		return err
	}
	start, end := w.Start.Format(time.RFC3339), (*string)(nil)
	if !w.End.IsZero() {
		end = new(string)
		*end = w.End.Format(time.RFC3339)
	}
	for i := range nodes {
		if err := annotate(ctx, c, &nodes[i], &start, end); err != nil {
			return err
		}
		fmt.Fprintf(l.Out, "node %s: %s\n", nodes[i].Name, session.LocalTimes(w.String(), l.Now()))
	}
	takes(ctx, l.Out, c, nodes, w, l.Now())
	return nil
}
