package maintenance

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

	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
	"github.com/davidlangworthy/jobtree/pkg/outage"
)

// lister is one "kubectl runs maintenance list".
type lister struct {
	*session.Session
	output *session.Output
}

func listCommand(s *session.Session) *cobra.Command {
	l := &lister{Session: s}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the nodes of which maintenance is announced",
		Long: `List the nodes of which maintenance is announced, by whomever:

  Ahead      it has not started
  Under way  it has, and is not over
  Over       it is, and the node is used again; the annotations may go ("kubectl runs maintenance cancel")
  Undated    a condition of the node says so (` + strings.Join(outage.Conditions(), ", ") + `), and
             nothing new comes to it as long as it does
  Ignored    the node's annotations say nothing that could be understood

With -o json or yaml the same is printed as data: nodes[] with name, state, start, end, message.`,
		Args: cobra.NoArgs,
		RunE: s.RunE(l.run),
	}
	l.output = session.NewAnswerOutput(cmd, "wide, json, yaml, name")
	return cmd
}

// answer is what "kubectl runs maintenance list" prints as data.
type answer struct {
	Nodes []announced `json:"nodes"`
}

// announced is what is announced of one node.
type announced struct {
	Name    string       `json:"name"`
	State   string       `json:"state"`
	Start   *metav1.Time `json:"start,omitempty"`
	End     *metav1.Time `json:"end,omitempty"`
	Message string       `json:"message,omitempty"`
}

// announcedOf returns what is announced of a node; false if nothing is.
func announcedOf(node *corev1.Node, now time.Time) (announced, bool) {
	a := announced{Name: node.Name}
	sign, out := outage.SignOf(node)
	if out {
		a.State, a.Message = "Undated", strings.TrimSuffix(sign.Condition+": "+sign.Message, ": ")
	}
	w, err := outage.WindowOf(node)
	if err != nil {
		a.State, a.Message = cmp.Or(a.State, "Ignored"), strings.TrimPrefix(a.Message+"; "+err.Error(), "; ")
		return a, true
	}
	if !w.Announced() {
		return a, out
	}
	a.Start, a.State = &metav1.Time{Time: w.Start}, "Under way"
	if !w.End.IsZero() {
		a.End = &metav1.Time{Time: w.End}
	}
	switch {
	case w.Over(now) && out:
		a.State = "Undated"
	case w.Over(now):
		a.State = "Over"
	case now.Before(w.Start):
		a.State = "Ahead"
	}
	return a, true
}

func (l *lister) run(ctx context.Context, _ []string) error {
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
	now, nodes := l.Now(), []announced{}
	for i := range list.Items {
		if a, is := announcedOf(&list.Items[i], now); is {
			nodes = append(nodes, a)
		}
	}
	slices.SortFunc(nodes, func(x, y announced) int {
		return cmp.Or(startOf(&x).Compare(startOf(&y)), strings.Compare(x.Name, y.Name))
	})
	if !l.output.ForPeople() {
		names := make([]*session.Answer, len(nodes))
		for i := range nodes {
			names[i] = session.AboutCore("Node", nodes[i].Name)
		}
		return l.output.PrintData(l.Out, answer{nodes}, names...)
	}
	if len(nodes) == 0 {
		fmt.Fprintln(l.ErrOut, "No maintenance is announced.")
		return nil
	}
	table := &metav1.Table{ColumnDefinitions: session.Columns("Node", "State", "Start", "End~1", "Message?…")}
	for i := range nodes {
		n := &nodes[i]
		table.Rows = append(table.Rows, session.Row(&corev1.Node{}, n.Name, n.State, when(n.Start, now), when(n.End, now),
			n.Message))
	}
	session.LocalCells(table, now)
	return session.PrintTable(table, l.Out, l.output.Wide(), false)
}

func startOf(a *announced) time.Time {
	if a.Start == nil {
		return time.Time{}
	}
	return a.Start.Time
}

// when tells an instant, and how far off it is.
func when(at *metav1.Time, now time.Time) string {
	if at == nil {
		return ""
	}
	if !at.After(now) {
		return view.Clock(*at, now)
	}
	return fmt.Sprintf("%s (%s)", view.Clock(*at, now), view.Countdown(*at, now))
}
