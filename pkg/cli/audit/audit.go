// Package audit is "kubectl runs audit".
package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/davidlangworthy/jobtree/pkg/audit"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
	"github.com/davidlangworthy/jobtree/pkg/cli/world"
)

// auditor is one "kubectl runs audit".
type auditor struct {
	*session.Session
	output *session.Output
	wait   time.Duration
}

// auditReport is what "kubectl runs audit" prints, as text or as data.
type auditReport struct {
	At metav1.Time `json:"at"`
	// Read is how much was looked at.
	Read     auditRead       `json:"read"`
	Findings []audit.Finding `json:"findings"`
	// Violations counts the findings that are violations, by invariant, 0 included.
	Violations map[audit.Invariant]int `json:"violations"`
	// Unread says what had to be guessed.
	Unread []string `json:"unread,omitempty"`
}

// auditRead counts what was read at last.
type auditRead struct {
	Nodes        int `json:"nodes"`
	Pods         int `json:"pods"`
	Runs         int `json:"runs"`
	Budgets      int `json:"budgets"`
	Leases       int `json:"leases"`
	Reservations int `json:"reservations"`
	Records      int `json:"records"`
}

// Command returns "kubectl runs audit".
func Command(s *session.Session) *cobra.Command {
	a := &auditor{Session: s}
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Check that no GPU is held twice, unpaid for or miscounted, from the objects in the API",
		Long: `Check that no GPU is held twice, unpaid for or miscounted. The command reads the objects in the API: nodes,
pods, Runs, Budgets, GPU leases, Reservations, and the records of settled GPU leases. It does not ask the scheduler,
which need not be running.

  I1   No GPU is held twice, and no node holds more than it has.
  I2   Every bound pod of a Run has exactly one open GPU lease, on its own node, and every open GPU lease its pod.
  I3   What an envelope pays for is within its limits, not counting overdraft.
  I4   A closed GPU lease says when and why it ended, and does not change.
  I5   A Run that has ended, or is gone, holds nothing.
  I6   A group lies in one domain.
  I7   A running Run has at least its minimum width, unless a rank is being replaced.
  I8   The GPUs and GPU-hours in the status of each Budget equal the sum of its GPU leases and its record.
  I9   No gang is partly bound past its deadline.
  I10  No Run was cut for a Run that did not start, unless the reason is recorded.
  I11  Every other pod that jobtree placed and that holds GPUs has exactly one payer.
  I12  No GPU lease was closed while its pod was alive.
  R21  The lottery records that Reservations have published are valid.

Everything is read twice, with --wait in between. What is found only once is not reported, because objects that belong
together are written one after the other. Findings that are legal but worth knowing have the level information.

You need the right to list nodes, pods, Runs, Budgets, GPU leases and Reservations everywhere, and ConfigMaps in
jobtree-system: the ClusterRole and the Role jobtree-auditor.

With -o json or yaml the same is printed as data: at, read (how many of each kind), findings[] (invariant, level,
objects[] (kind, namespace, name), message, remedy), violations (how many by invariant, 0 included), unread[] (what was
guessed).

The exit code is 1 if there is a violation, and 7 if something needed could not be read.`,
		Example: `  kubectl runs audit

  # Which invariants are violated, for a script
  kubectl runs audit -o json | jq '.violations | with_entries(select(.value > 0))'`,
		Args: cobra.NoArgs,
		RunE: s.RunE(a.run),
	}
	a.output = session.NewAnswerOutput(cmd, "wide, json, yaml, name")
	session.DurationVar(cmd.Flags(), &a.wait, "wait", 5*time.Second, "Time between the two looks, at least 1s.")
	return cmd
}

func (a *auditor) run(ctx context.Context, _ []string) error {
	if err := a.output.Check(); err != nil {
		return err
	}
	if a.wait < time.Second {
		return session.Fail(session.ExitUsage, "--wait is %s; it must be at least 1s: what one look sees may be under way",
			a.wait)
	}
	report, err := a.examine(ctx)
	if err != nil {
		return a.unable(err)
	}
	if err := a.print(report); err != nil {
		return err
	}
	violations := 0
	for _, n := range report.Violations {
		violations += n
	}
	if violations > 0 {
		return session.Fail(session.ExitError, "%s of invariants", view.Counted(violations, "violation"))
	}
	return nil
}

// unable says that nothing is known, with an exit code that no finding has.
func (a *auditor) unable(err error) error {
	var failed *session.Failure
	if errors.As(a.InWords(err), &failed) && failed.Code == session.ExitError {
		return session.Fail(session.ExitUnread, "%s", failed.Message)
	}
	return err
}

// examine looks twice.
func (a *auditor) examine(ctx context.Context) (*auditReport, error) {
	c, _, _, err := a.Connect()
	if err != nil {
		return nil, err
	}
	args, guessed, err := world.SchedulerArgs(ctx, c)
	if err != nil {
		return nil, err
	}
	rules := audit.RulesOf(args)
	read := func() (*audit.World, *audit.Look, error) {
		w, err := readWorld(ctx, c, a.Now())
		if err != nil {
			return nil, nil, err
		}
		return w, rules.Look(w), nil
	}
	_, before, err := read()
	if err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(a.wait):
	}
	w, after, err := read()
	if err != nil {
		return nil, err
	}
	report := &auditReport{At: metav1.NewTime(w.At.Truncate(time.Second)), Findings: audit.Standing(before, after),
		Read: auditRead{len(w.Nodes), len(w.Pods), len(w.Runs), len(w.Budgets), len(w.Leases), len(w.Reservations),
			len(w.Records)}}
	if report.Findings == nil {
		report.Findings = []audit.Finding{}
	}
	report.Violations = audit.Count(report.Findings)
	if guessed != "" {
		report.Unread = []string{guessed}
	}
	return report, nil
}

func (a *auditor) print(report *auditReport) error {
	if a.output.ForPeople() {
		for _, what := range report.Unread {
			fmt.Fprintf(a.ErrOut, "Not read: %s\n", what)
		}
		return writeAudit(a.Out, report, a.FormOf(a.output))
	}
	names := make([]*session.Answer, len(report.Findings))
	for i := range report.Findings {
		o := report.Findings[i].Objects[0]
		names[i] = session.About(o.Kind, o.Name)
		if o.Kind == "Node" || o.Kind == "Pod" {
			names[i] = session.AboutCore(o.Kind, o.Name)
		}
	}
	return a.output.PrintData(a.Out, report, names...)
}

// writeAudit writes what was found for people: a line each, and what to do about each invariant that is violated.
func writeAudit(out io.Writer, report *auditReport, form session.Form) error {
	r := report.Read
	var text strings.Builder
	if len(report.Findings) > 0 {
		table := &metav1.Table{ColumnDefinitions: session.Columns("Invariant", "Level~1", "Object", "Finding…", "+Also")}
		for i := range report.Findings {
			f := &report.Findings[i]
			var also []string
			for _, o := range f.Objects[1:] {
				also = append(also, o.String())
			}
			table.Rows = append(table.Rows, session.Row(nil, string(f.Invariant), string(f.Level), f.Objects[0].String(),
				f.Message, strings.Join(also, ", ")))
		}
		if err := form.Print(table, &text, false); err != nil {
			return err
		}
		text.WriteString("\n")
	}
	last := audit.Invariant("")
	for i := range report.Findings {
		if f := &report.Findings[i]; f.Level == audit.Violation && f.Invariant != last {
			fmt.Fprintf(&text, "%s: %s\n", f.Invariant, f.Remedy)
			last = f.Invariant
		}
	}
	violations := 0
	for _, n := range report.Violations {
		violations += n
	}
	fmt.Fprintf(&text, "%s in %s, %s, %s, %s, %s, %s and %s of settled GPU leases\n",
		view.Counted(violations, "violation"),
		view.Counted(r.Nodes, "node"), view.Counted(r.Pods, "pod"),
		view.Counted(r.Runs, "Run"), view.Counted(r.Budgets, "Budget"), view.Counted(r.Reservations, "Reservation"),
		view.Counted(r.Leases, "GPU lease"), view.Counted(r.Records, "record"))
	_, err := io.WriteString(out, text.String())
	return err
}
