// Package history is "kubectl runs history".
package history

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// history is one "kubectl runs history".
type history struct {
	*session.Session
	output *session.Output
	all    bool
	since  string
	owner  string
	mine   bool
}

// Command returns "kubectl runs history".
func Command(s *session.Session) *cobra.Command {
	h := &history{Session: s}
	cmd := &cobra.Command{
		Use:        "history [RUN]",
		SuggestFor: []string{"sacct", "accounting"},
		Short:      "Show what Runs have used, how they ended and who paid",
		Long: `Show the Runs that hold GPUs or held some, from the ledger: how they ended, how long they took, how many
GPU-hours they are charged, and who pays. Deleted Runs are included.

STATE is the Run's phase. For a deleted Run it is how its last GPUs were released: Canceled if the deletion did that.
ELAPSED is the time from the first GPU lease to the end of the last one, or until now. GPUS is the largest number that
the Run held at one time, without spares. PAYERS are the envelopes, the one that is charged most first. ATTEMPTS (with
-o wide) is how often the Run has started.

The scheduler deletes GPU leases that have been closed for longer than its ledgerRetention, 30 days by default. For
exact amounts for finance, see "kubectl runs leases -o csv".

With -o json or yaml the same is printed as data: runs[] with namespace, run, uid, owner, state, started, ended,
elapsedSeconds, gpus, attempts, gpuHours and payers[] (budget, envelope, owner, gpuHours).`,
		Example: `  # What ran since yesterday
  kubectl runs history --since 24h

  # GPU-hours of an owner's Runs in the last 30 days, in all namespaces
  kubectl runs history -A --since 30d --owner 'org:ai:rai*'`,
		Args:              session.RunNames(0, 1),
		RunE:              s.OnRuns(h.run),
		ValidArgsFunction: s.CompleteRuns,
	}
	h.output = session.NewAnswerOutput(cmd, "wide, json, yaml")
	cmd.Flags().BoolVarP(&h.all, "all-namespaces", "A", false, "Show the Runs of all namespaces.")
	cmd.Flags().StringVar(&h.since, "since", "",
		"Only Runs that held GPUs at any time since then: 12h, 30d, 2026-01-31 or 2026-01-31T00:00:00Z.")
	cmd.Flags().StringVar(&h.owner, "owner", "", "Only Runs of this owner; a trailing * makes it a prefix.")
	cmd.Flags().BoolVar(&h.mine, "mine", false, "Only Runs that you submitted and that still exist.")
	session.Must(cmd.RegisterFlagCompletionFunc("owner", s.CompleteOwners))
	return cmd
}

func (h *history) run(ctx context.Context, names []string) error {
	since, err := session.ParseSince(h.since, h.Now())
	if err != nil {
		return err
	}
	if err := h.output.Check(); err != nil {
		return err
	}
	c, namespace, _, err := h.Connect()
	if err != nil {
		return err
	}
	if h.all {
		namespace = ""
	}
	leases, err := h.ReadLeases(ctx, c, namespace, names, &client.ListOptions{})
	if err != nil {
		return err
	}
	var runs rqv1.RunList
	if err := h.List(ctx, c, namespace, &runs); err != nil {
		return err
	}
	mine, err := h.submittedByMe(ctx, c, runs.Items)
	if err != nil {
		return err
	}
	entries, err := entriesOf(leases, runs.Items, h.Now())
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e entry) bool {
		return !session.OwnerMatches(h.owner, e.Owner) || h.mine && !mine[e.UID] || e.Ended != nil && !e.Ended.After(since)
	})
	if !h.output.ForPeople() {
		return h.output.PrintData(h.Out, answer{Runs: entries})
	}
	if len(entries) == 0 {
		fmt.Fprintln(h.ErrOut, view.NothingFound("Runs that held GPUs", namespace))
		return nil
	}
	session.NamesOf(runs.Items).Into(&entries)
	return session.PrintTable(tableOf(entries, h.Now()), h.Out, h.output.Wide(), h.all)
}

// submittedByMe tells the Runs of whoever asks, by their UIDs, if that matters.
func (h *history) submittedByMe(ctx context.Context, c client.Client, runs []rqv1.Run) (map[types.UID]bool, error) {
	if !h.mine {
		return nil, nil
	}
	who, err := h.Me(ctx, c)
	if err != nil {
		return nil, err
	}
	mine := map[types.UID]bool{}
	for i := range runs {
		mine[runs[i].UID] = runs[i].Spec.Submitter == who
	}
	return mine, nil
}

// answer is what "kubectl runs history" prints as data.
type answer struct {
	Runs []entry `json:"runs"`
}

func tableOf(entries []entry, now time.Time) *metav1.Table {
	table := &metav1.Table{ColumnDefinitions: session.Columns("Run", "+Owner", "State", "Started~3", "+Ended",
		"Elapsed~1", "GPUs~4", "+Attempts", "GPU-Hours", "Payers~2")}
	for i := range entries {
		e := &entries[i]
		ended := ""
		if e.Ended != nil {
			ended = session.Clock(e.Ended.Time, now)
		}
		row := session.Row(&rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace}}, e.Run, string(e.Owner), e.State,
			session.Clock(e.Started.Time, now), ended, duration.HumanDuration(time.Duration(e.ElapsedSeconds)*time.Second),
			fmt.Sprint(e.GPUs), fmt.Sprint(e.Attempts), view.Short(e.GPUHours), e.payersInWords())
		table.Rows = append(table.Rows, row)
	}
	return table
}

// payersInWords names the first payer, and says how many others there are.
func (e *entry) payersInWords() string {
	words := make([]string, len(e.Payers))
	for i, p := range e.Payers {
		words[i] = p.Budget + "/" + p.Envelope
	}
	if more := len(words) - 2; more > 0 {
		words = append(words[:2], fmt.Sprintf("%d more", more))
	}
	return strings.Join(words, ", ")
}
