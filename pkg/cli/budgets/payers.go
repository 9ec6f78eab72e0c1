package budgets

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// payerSearch is one "kubectl runs budgets explain".
type payerSearch struct {
	*session.Session
	output *session.Output
}

func coverCommand(s *session.Session) *cobra.Command {
	p := &payerSearch{Session: s}
	cmd := &cobra.Command{
		Use:   "explain RUN",
		Short: "Say who would pay for a Run, in which order, and what stops each of them",
		Long: `Say who pays for a Run. For a waiting Run, say which envelopes were asked to pay, in the order in which they
are asked: those of its owner, of siblings, of ancestors, and of sponsors as the Run lists them. Who was asked and what
would help comes from status.refusal of the Run, which the scheduler wrote at its last attempt.

FREE is how many GPUs the envelope's concurrency leaves now. PAYS is what it pays for now. TAKES is what it would pay
for of the Run's minimum width. STOPS is what keeps it from paying for more. An envelope pays only on nodes that match
its SELECTOR. Of a sponsor that does not lend to the Run's owner, nothing else is shown. If the Run cannot be fully paid
for, the answer begins with what is short and what would help.

With -o json or yaml the same is printed as data: run, namespace, owner, phase, looked, flavor, heldGPUs, wantedGPUs,
payableGPUs, shortGPUs, reason, message, changes[] (what, gpus), payers[] (step, relation, owner, budget, envelope,
selector, concurrency, usedGPUs, freeGPUs, paysGPUs, takesGPUs, limit (kind, cap, max, left), stops), unread[]. A limit
of kind maxGPUHours or lending.maxGPUHours is in GPU-hours, any other in GPUs.`,
		Example: `  kubectl runs budgets explain trainer-64

  # How many GPUs are short, for a script
  kubectl runs budgets explain trainer-64 -o jsonpath='{.shortGPUs}'`,
		Args:              session.RunNames(1, 1),
		RunE:              s.OnRuns(p.run),
		ValidArgsFunction: s.CompleteRuns,
	}
	p.output = session.NewAnswerOutput(cmd, "wide, json, yaml, name")
	return cmd
}

func (p *payerSearch) run(ctx context.Context, args []string) error {
	if err := p.output.Check(); err != nil {
		return err
	}
	c, namespace, _, err := p.Connect()
	if err != nil {
		return err
	}
	var run rqv1.Run
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: args[0]}, &run); err != nil {
		return p.NotFoundInWords(err, namespace, args[0])
	}
	budgets, err := session.ReadBudgets(ctx, c)
	if err != nil {
		return err
	}
	leases, err := p.ReadLeases(ctx, c, namespace, args, session.LeasesOpen)
	leases = slices.DeleteFunc(leases, func(l rqv1.Lease) bool { return l.Spec.RunRef.UID != run.UID })
	a := payersOf(&run, leases, budgets)
	if err != nil {
		a.Unread = []string{fmt.Sprintf("GPU leases, which say what is paid for now: %s", session.Refusal(err))}
	}
	if !p.output.ForPeople() {
		return p.output.PrintData(p.Out, a, session.About("Run", a.Run))
	}
	warnOf(p.Session, slices.DeleteFunc(budgets, func(b rqv1.Budget) bool {
		return !slices.ContainsFunc(a.Payers, func(o payerView) bool { return o.Budget == b.Name })
	}))
	session.Show(ctx, c, namespace, &a)
	return writePayers(p.Out, a, p.FormOf(p.output))
}
