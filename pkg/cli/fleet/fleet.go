// Package fleet is "kubectl runs fleet".
package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/world"
	"github.com/davidlangworthy/jobtree/pkg/picture"
)

// mostDrawn is how many nodes are drawn one by one unless that is asked for.
const mostDrawn = 128

// fleet is one "kubectl runs fleet".
type fleet struct {
	*session.Session
	output  *session.Output
	nodes   bool
	domains bool
	watch   bool

	every   time.Duration // between two looks
	letters picture.Letters
}

// Command returns "kubectl runs fleet".
func Command(s *session.Session) *cobra.Command {
	return (&fleet{Session: s, every: 2 * time.Second}).command()
}

func (f *fleet) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:        "fleet",
		SuggestFor: []string{"sinfo", "top", "gpus"},
		Short:      "Show the fleet: what is free, and who is on which node",
		Long: `Show the fleet: a row for each domain, with a cell for each node and a character for each GPU.

  T    a GPU that the Run with this letter uses; the line below the picture says which Run that is
  t    a GPU that stands by for that Run
  #    a GPU of one of the other Runs, if there are more of them than letters
  *    a GPU of a pod that is not jobtree's
  .    a free GPU; ":" if a waiting Run is going to start on that node
  x    a free GPU of a node that is out of service or about to be ("kubectl runs nodes" says why)
  !    a GPU that its node has but cannot allocate

A fleet of more than 128 nodes is shown as domains, with a bar each. --nodes shows all nodes, --domains only domains. If
you may not list nodes, you see the domains as the scheduler publishes them: "#" is what is not free.

With -o json or yaml the same is printed as data: levels[] (node labels), domains[] (domain[], gpuType, gpus, free,
promised, nodes, outOfService), nodes[] (name, domain[], gpuType, state, why, since, leftOut, for[], spans[] with use,
run, tenant and gpus), runs[] (run, gpus, spare) and promises[] (run, at, nodes[]).`,
		Example: `  # Watch the fleet fill up
  kubectl runs fleet --watch

  # How many GPUs of each type are free
  kubectl runs fleet -o json | jq -r '.domains | group_by(.gpuType)[] | [.[0].gpuType, (map(.free) | add)] | @tsv'`,
		Args: cobra.NoArgs,
		RunE: f.RunE(f.run),
	}
	f.output = session.NewAnswerOutput(cmd, "json, yaml")
	cmd.Flags().BoolVar(&f.nodes, "nodes", false, "Draw all nodes.")
	cmd.Flags().BoolVar(&f.domains, "domains", false, "Draw domains only.")
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "Keep running, and show the fleet whenever it changes.")
	cmd.MarkFlagsMutuallyExclusive("nodes", "domains")
	return cmd
}

func (f *fleet) run(ctx context.Context, _ []string) error {
	if err := f.output.Check(); err != nil {
		return err
	}
	c, _, _, err := f.Connect()
	if err != nil {
		return err
	}
	return f.Repeat(ctx, f.every, !f.watch, func(ctx context.Context) (session.Shown, error) {
		return f.look(ctx, c)
	})
}

// look reads the fleet and returns it as it is to be shown.
func (f *fleet) look(ctx context.Context, c client.Client) (session.Shown, error) {
	now, unread, err := world.ReadFleet(ctx, c, f.Now())
	if err != nil {
		return session.Shown{}, err
	}
	state, err := json.Marshal(now)
	if err != nil {
		return session.Shown{}, err
	}
	note := ""
	for _, what := range unread {
		note += fmt.Sprintf("Not shown: %s\n", what)
	}
	var out bytes.Buffer
	switch {
	case !f.output.ForPeople():
		err = f.output.PrintData(&out, now)
	case len(now.Domains) == 0:
		note += "No nodes with GPUs found; the scheduler's gpuResource names what counts.\n"
	default:
		session.Show(ctx, c, "", &now)
		out.WriteString(f.draw(now))
	}
	return session.Shown{Text: out.Bytes(), Note: note, State: string(state)}, err
}

// draw draws the fleet: its nodes, or only its domains.
func (f *fleet) draw(now world.Fleet) string {
	if f.domains || len(now.Nodes) == 0 || len(now.Nodes) > mostDrawn && !f.nodes {
		return picture.Bars(now.Domains, f.Width())
	}
	f.letters.Keep(now.Runs)
	for i := range now.Runs {
		f.letters.Add(now.Runs[i].Run)
	}
	for i := range now.Nodes {
		now.Nodes[i].Why = session.LocalTimes(session.Printable(now.Nodes[i].Why), f.Now())
	}
	text := picture.Text(now.Nodes, picture.Style{Letters: &f.letters, Colours: printers.AllowsColorOutput(f.Out),
		Width: f.Width()})
	for i := range now.Promises {
		text += picture.Sentence(now.Promises[i].Words(f.Now()), f.Width())
	}
	return text
}
