// Package plan is "kubectl runs plan".
package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// planner is one "kubectl runs plan".
type planner struct {
	*session.Session
	output  *session.Output
	all     bool
	files   []string
	changed bool
}

// told says what the command tells.
const told = `Show when a Run starts, what stands in its way, and what is done about it, as its Reservation
(reservations.rq.davidlangworthy.io) promises. Without a name, all waiting Runs of the namespace are drawn on a time
axis; those without a date are listed with their place in line and the reason.

STARTS BY is the Run's date: it starts earlier if there is room earlier. DEFICIT is how many GPUs are missing where the
Run is going to start, REMEDIES is what is done about it, and MAY BE CUT lists the Runs that may be ended or shrunk,
with the chance of each. A running Run is shown with the Reservations that put it at risk. A Run without a date is shown
with its place in line, among the Runs that wait for its GPU type.

With -f, the command says what would happen if the objects of a file were created now: Runs, Jobs, JobSets,
LeaderWorkerSets, RayClusters, MPIJobs, TrainJobs with their runtimes, pods, and anything else with a pod template. Each
group of pods is planned as the Run that would represent it. With --changes, it says what would make a Run start now:
fewer GPUs, no spares, another type. For both it reads the objects that the scheduler decides from, in all namespaces,
and decides as the scheduler does; nothing is written. If you may not read these, -f asks the scheduler with a Run named
what-if-..., which is suspended, holds nothing and is deleted at once; the answer then names neither nodes nor payers
nor the Runs that may be cut.

With -o json or yaml the same is printed as data:

  at                    when the answer holds
  run, namespace, owner, phase, gpus, gpuType, submitted, maxDuration
  looked                false until the scheduler has looked at the Run as it is now
  reason, message       why it waits, or where it is
  refusal               the same as data, with who was asked to pay and what would help, as in status.refusal of the Run
  earliestStart, countdownSeconds, confidence, deficitGPUs, scope, remedies[], odds, intendedSlice, payingEnvelopes[],
  conflictSet[], conflicts, reservation, state, stateReason, activatedAt, cuts[]
                        as in the Reservation; absent when the Run has no date
  queue                 ahead, of, at: its place in line when it has no date
  startsNow             gpus, nodes[], payingEnvelopes[]; with -f, when it would start at once
  changes[]             what, gpus: changes that would make it start now, each by itself
  maintenance           which nodes of the Run are to be out of service by plan, and when
  atRisk[], atRiskTotal reservation, at, countdownSeconds, probability of the first of them, and how many there are
  notes[]               with -f, what was assumed
  unread[]              what could not be read

Without a name these are the items of runs[], earliest start first.`

// Command returns "kubectl runs plan".
func Command(s *session.Session) *cobra.Command {
	p := &planner{Session: s}
	cmd := &cobra.Command{
		Use:        "plan [RUN | -f FILE]",
		SuggestFor: []string{"when", "estimate", "forecast", "reservations", "rsv"},
		Short:      "Show when a Run starts, what stands in its way, and what is done about it",
		Long:       told,
		Example: `  kubectl runs plan trainer-128

  # Everything that waits, in all namespaces, by start
  kubectl runs plan -A

  # What would happen if I submitted this?
  kubectl runs plan -f trainer-128.yaml

  # What would happen if I applied this JobSet?
  kubectl runs plan -f llm-jobset.yaml

  # The start, for a script
  kubectl runs plan trainer-128 -o json | jq -r .earliestStart`,
		Args:              session.RunNames(0, 1),
		RunE:              s.OnRuns(p.run),
		ValidArgsFunction: s.CompleteRuns,
	}
	p.output = session.NewAnswerOutput(cmd, "wide (no conflict and no node is left out), json, yaml, name")
	cmd.Flags().StringArrayVarP(&p.files, "file", "f", nil,
		`File, directory, or "-" for standard input: Runs, or objects that create pods, that do not exist yet.`)
	cmd.Flags().BoolVar(&p.changed, "changes", false, "Look for changes to the Run that would make it start now.")
	cmd.Flags().BoolVarP(&p.all, "all-namespaces", "A", false, "Show the waiting Runs of all namespaces.")
	return cmd
}

func (p *planner) run(ctx context.Context, args []string) error {
	if err := p.output.Check(); err != nil {
		return err
	}
	if p.all && len(args) > 0 {
		return session.Fail(session.ExitUsage, "a Run's name belongs to one namespace: leave out -A or the name")
	}
	if len(p.files) > 0 && (p.all || len(args) > 0) {
		return session.Fail(session.ExitUsage, "-f asks about Runs that have not been submitted: leave out -A and the name")
	}
	c, namespace, explicit, err := p.Connect()
	if err != nil {
		return err
	}
	if len(p.files) > 0 {
		return p.whatIf(ctx, c, namespace, explicit)
	}
	if len(args) > 0 {
		answer, err := p.one(ctx, c, client.ObjectKey{Namespace: namespace, Name: args[0]})
		if err != nil {
			return err
		}
		return p.print(ctx, c, answer)
	}
	if p.all {
		namespace = ""
	}
	t, err := p.waiting(ctx, c, namespace)
	if err != nil {
		return err
	}
	if len(t.Runs) == 0 && p.output.ForPeople() {
		fmt.Fprintln(p.ErrOut, view.NothingFound("waiting Runs", namespace))
		return nil
	}
	if p.output.ForPeople() {
		session.Show(ctx, c, namespace, &t)
	}
	return p.printAll(t)
}

// one reads a Run and its Reservation. Without the Reservation the Run still says when it starts.
func (p *planner) one(ctx context.Context, c client.Client, key client.ObjectKey) (planAnswer, error) {
	var run rqv1.Run
	if err := c.Get(ctx, key, &run); err != nil {
		if apierrors.IsForbidden(err) {
			return p.byReservation(ctx, c, key, err)
		}
		return planAnswer{}, p.NotFoundInWords(err, key.Namespace, key.Name)
	}
	answer := planOf(&run, nil, p.Now())
	if run.Status.PendingReservation != "" {
		var r rqv1.Reservation
		if err := c.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: run.Status.PendingReservation},
			&r); err != nil {
			answer.Unread = []string{fmt.Sprintf("Reservation %s: %s", run.Status.PendingReservation, session.Refusal(err))}
		} else {
			answer = planOf(&run, &r, p.Now())
		}
	}
	if p.changed && answer.Phase == rqv1.RunPending {
		err := p.changes(ctx, c, &run, &answer)
		return answer, err
	}
	return answer, nil
}

// waiting reads the Runs of a namespace, or of all, that wait to start, and their Reservations.
func (p *planner) waiting(ctx context.Context, c client.Client, namespace string) (timeline, error) {
	var runs rqv1.RunList
	if err := p.List(ctx, c, namespace, &runs); err != nil {
		return timeline{}, err
	}
	var list rqv1.ReservationList
	var unread []string
	if err := p.List(ctx, c, namespace, &list); err != nil {
		unread = []string{"Reservations: " + session.Refusal(err)}
	}
	byName := map[client.ObjectKey]*rqv1.Reservation{}
	for i := range list.Items {
		byName[client.ObjectKeyFromObject(&list.Items[i])] = &list.Items[i]
	}
	t := timeline{At: metav1.NewTime(p.Now()), Runs: []planAnswer{}, Unread: unread}
	for i := range runs.Items {
		if run := &runs.Items[i]; view.PhaseOf(run) == rqv1.RunPending {
			r := byName[client.ObjectKey{Namespace: run.Namespace, Name: run.Status.PendingReservation}]
			t.Runs = append(t.Runs, planOf(run, r, t.At.Time))
		}
	}
	slices.SortFunc(t.Runs, byStart)
	return t, nil
}

// byStart puts Runs with a date first, by date; older Runs come before younger ones.
func byStart(a, b planAnswer) int {
	switch {
	case a.Promise != nil && b.Promise == nil:
		return -1
	case a.Promise == nil && b.Promise != nil:
		return 1
	case a.Promise != nil:
		if order := a.EarliestStart.Compare(b.EarliestStart.Time); order != 0 {
			return order
		}
	}
	return cmp.Or(a.Submitted.Compare(b.Submitted.Time), strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Run, b.Run))
}
