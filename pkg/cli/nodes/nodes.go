// Package nodes is "kubectl runs nodes".
package nodes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/world"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/picture"
	"github.com/davidlangworthy/jobtree/pkg/suspicion"
)

// nodeList is one "kubectl runs nodes".
type nodeList struct {
	*session.Session
	output *session.Output
}

// Command returns "kubectl runs nodes".
func Command(s *session.Session) *cobra.Command {
	l := &nodeList{Session: s}
	cmd := &cobra.Command{
		Use:     "nodes",
		Aliases: []string{"node"},
		Short:   "List the nodes with GPUs, and which of them are lost or suspect",
		Long: `List the nodes with GPUs and how they stand with jobtree:

  Lost       its Runs have moved away or ended; it gets no pods until somebody uncordons it, or, if a health checker's
             condition reported the loss and nobody else has cordoned the node, until that condition is gone
  HeldBack   it shows a sign of loss, but so do more nodes at once than nodeLossLimit allows: its Runs stay, and it
             gets no new pods, until fewer nodes do or "kubectl runs nodes lost" says that it is gone
  NotReady   its condition Ready is not True
  Cordoned   somebody has cordoned it
  Outage     maintenance of it is announced ("kubectl runs maintenance list")
  Suspect    ranks died there that run elsewhere, or ranks of several owners died there, or it rejected pods: it is
             avoided if there is a choice, for a day or until "kubectl runs nodes clear"
  OK         none of these

SINCE and WHY come from the record that the scheduler or an administrator left on the node. With -o wide, MARKS counts
the recorded incidents against the node.

With -o json or yaml the same is printed as data: nodes[] with name, gpus, state, since, reason, message, cordoned,
ready, and marks[] with at, why and message: all recorded incidents, also those before it was cleared.`,
		Example: `  # Nodes that are lost, and why
  kubectl runs nodes -o json | jq -r '.nodes[] | select(.state == "Lost") | [.name, .since, .message] | @tsv'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return session.Fail(session.ExitUsage, "%q is not a command of %q; choose from lost, clear", args[0],
					cmd.CommandPath())
			}
			return nil
		},
		RunE: s.RunE(l.run),
	}
	l.output = session.NewAnswerOutput(cmd, "wide, json, yaml, name")
	cmd.AddCommand(nodesLostCommand(s), nodesClearCommand(s))
	return cmd
}

func (l *nodeList) run(ctx context.Context, _ []string) error {
	if err := l.output.Check(); err != nil {
		return err
	}
	c, _, _, err := l.Connect()
	if err != nil {
		return err
	}
	var list corev1.NodeList
	if err := c.List(ctx, &list); err != nil {
		return err
	}
	args, guessed, err := world.SchedulerArgs(ctx, c)
	if err != nil {
		return err
	}
	if guessed != "" {
		fmt.Fprintf(l.ErrOut, "Not read: %s\n", guessed)
	}
	standing := nodesStanding(list.Items, args.GPUResource, l.Now())
	if !l.output.ForPeople() {
		names := make([]*session.Answer, len(standing))
		for i := range standing {
			names[i] = session.AboutCore("Node", standing[i].Name)
		}
		return l.output.PrintData(l.Out, nodesAnswer{Nodes: standing}, names...)
	}
	if len(standing) == 0 {
		fmt.Fprintf(l.ErrOut, "No nodes with %s found; the scheduler's gpuResource names what counts.\n",
			strings.Join(args.GPUResource, " or "))
		return nil
	}
	table := &metav1.Table{ColumnDefinitions: session.Columns("Name", "GPUs", "State", "Since?", "Why…", "+Cordoned",
		"+Ready", "+Marks")}
	for i := range standing {
		n, since := &standing[i], ""
		if n.Since != nil {
			since = duration.HumanDuration(l.Now().Sub(n.Since.Time))
		}
		why := strings.TrimSpace(n.Reason + " " + n.Message)
		table.Rows = append(table.Rows, session.Row(&corev1.Node{}, n.Name, fmt.Sprint(n.GPUs), string(n.State), since, why,
			fmt.Sprint(n.Cordoned), n.Ready, fmt.Sprint(len(n.Marks))))
	}
	session.LocalCells(table, l.Now())
	return session.PrintTable(table, l.Out, l.output.Wide(), false)
}

// nodesAnswer is what "kubectl runs nodes" prints as data.
type nodesAnswer struct {
	Nodes []nodeStanding `json:"nodes"`
}

// nodeStanding is how one node stands with jobtree.
type nodeStanding struct {
	Name     string        `json:"name"`
	GPUs     int64         `json:"gpus"`
	State    picture.State `json:"state"`
	Since    *metav1.Time  `json:"since,omitempty"`
	Reason   string        `json:"reason,omitempty"`
	Message  string        `json:"message,omitempty"`
	Cordoned bool          `json:"cordoned"`
	Ready    string        `json:"ready"`
	// Marks are what speaks against the node, the latest last.
	Marks []suspicion.Mark `json:"marks,omitempty"`
}

// nodesStanding returns how the nodes with GPUs stand, the worst first.
func nodesStanding(nodes []corev1.Node, gpus config.Resources, now time.Time) []nodeStanding {
	out := []nodeStanding{}
	for i := range nodes {
		status := &nodes[i].Status
		if n := max(gpus.Sum(status.Capacity), gpus.Sum(status.Allocatable)); n > 0 {
			out = append(out, standingOf(&nodes[i], int64(n), now))
		}
	}
	slices.SortFunc(out, func(a, b nodeStanding) int {
		return cmp.Or(cmp.Compare(slices.Index(picture.States, a.State), slices.Index(picture.States, b.State)),
			strings.Compare(a.Name, b.Name))
	})
	return out
}

func standingOf(node *corev1.Node, gpus int64, now time.Time) nodeStanding {
	of := picture.StandingOf(node, now)
	n := nodeStanding{Name: node.Name, GPUs: gpus, State: of.State, Reason: of.Reason, Message: of.Message,
		Cordoned: node.Spec.Unschedulable, Ready: string(of.Ready), Marks: of.Marks}
	if !of.Since.IsZero() {
		since := metav1.NewTime(of.Since)
		n.Since = &since
	}
	return n
}
