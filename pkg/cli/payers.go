package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// payerSearch is one "kubectl runs budgets explain".
type payerSearch struct {
	*session
	output      *output
	gpuResource string
	flavorLabel string
	spareRate   string
}

func (s *session) coverCommand() *cobra.Command {
	p := &payerSearch{session: s}
	cmd := &cobra.Command{
		Use:   "explain RUN",
		Short: "Say who would pay for a Run, in which order, and what stops each of them",
		Long: `Say who pays and who would pay for a Run: envelope by envelope in the order in which they are asked, its owner's own,
its siblings', its ancestors', then its sponsors' as listed.

FREE is what the envelope's concurrency leaves, OFFERS what the envelope could pay for by itself under all its limits, in
whole pods, PAYS what it pays for now, TAKES what it would pay for of what the Run still needs, and STOPS what keeps it
from more. An envelope pays only on nodes that match its SELECTOR: whether there is room on them is not looked at here;
for that see "kubectl runs explain". For a Run that nobody can pay for in full the answer begins with what is short and
what would help.

With -o json or yaml the same is printed as data: run, namespace, owner, phase, flavor, gpusPerPod, podSizeFrom, heldGPUs,
wantedGPUs, payableGPUs, shortGPUs, message, remedies[] (what, payableGPUs), offers[] (step, relation, owner, budget,
envelope, selector, concurrency, usedGPUs, freeGPUs, offersGPUs, paysGPUs, takesGPUs, limit (kind, cap, max, left), stops),
unread[]. A limit of kind maxGPUHours or lending.maxGPUHours is in GPU-hours, any other in GPUs.`,
		Example: `  kubectl runs budgets explain trainer-64

  # How many GPUs are short, for a script
  kubectl runs budgets explain trainer-64 -o json | jq .shortGPUs`,
		Args:              runNames(1, 1),
		RunE:              s.runE(p.run),
		ValidArgsFunction: s.completeRuns,
	}
	p.output = newAnswerOutput(cmd, "wide, json, yaml, name")
	cmd.Flags().StringVar(&p.gpuResource, "gpu-resource", "nvidia.com/gpu", "Resource that is a GPU, as in the scheduler's gpuResource.")
	cmd.Flags().StringVar(&p.flavorLabel, "flavor-label", "gpu.flavor", "Node label that holds the GPU type, as in the scheduler's flavorLabel.")
	cmd.Flags().StringVar(&p.spareRate, "spare-rate", "0.5", "What a GPU-hour of a spare is charged, as in the scheduler's spareRate.")
	return cmd
}

func (p *payerSearch) run(ctx context.Context, args []string) error {
	if err := p.output.check(); err != nil {
		return err
	}
	rate, err := budget.ParseRate(p.spareRate)
	if err != nil {
		return fail(exitUsage, "--spare-rate: %v", err)
	}
	c, namespace, _, err := p.connect()
	if err != nil {
		return err
	}
	q, unread, err := p.read(ctx, c, client.ObjectKey{Namespace: namespace, Name: args[0]})
	if err != nil {
		return err
	}
	q.rates, q.now = budget.Rates{Spare: rate}, p.now()
	a, err := q.answer()
	if err != nil {
		return err
	}
	a.Unread = unread
	if !p.output.forPeople() {
		return p.output.printData(p.Out, a, about("Run", a.Run))
	}
	p.warnOf(slices.DeleteFunc(q.budgets, func(b rqv1.Budget) bool {
		return !slices.ContainsFunc(a.Offers, func(o offer) bool { return o.Budget == b.Name })
	}))
	return writeAnswer(p.Out, a, p.output.wide())
}

// read gathers what the answer is made of. What the user may not read is named, and does not stop it; but without
// Budgets there is no answer.
func (p *payerSearch) read(ctx context.Context, c client.Client, key client.ObjectKey) (*payerQuestion, []string, error) {
	q := &payerQuestion{}
	if err := c.Get(ctx, key, &q.run); err != nil {
		return nil, nil, notFoundInWords(err, key.Namespace, key.Name)
	}
	var err error
	if q.budgets, err = readBudgets(ctx, c); err != nil {
		return nil, nil, err
	}
	var unread []string
	note := func(what string, err error) {
		if err != nil {
			unread = append(unread, fmt.Sprintf("%s: %s", what, refusal(err)))
		}
	}
	q.leases, err = readLeases(ctx, c, key.Namespace, []string{key.Name}, leasesOpen)
	note("GPU leases, which say what is paid for now", err)
	q.leases = slices.DeleteFunc(q.leases, func(l rqv1.Lease) bool { return l.Spec.RunRef.UID != q.run.UID })
	q.size = templateSize(&q.run, p.gpuResource)
	if q.size.stated == 0 {
		var pods corev1.PodList
		note("pods, which say how many GPUs each has", c.List(ctx, &pods, client.InNamespace(key.Namespace), client.MatchingLabels{rqv1.LabelRun: key.Name}))
		for i := range pods.Items {
			q.size.stated, q.size.from = max(q.size.stated, rank.PodGPUs(&pods.Items[i].Spec, p.gpuResource)), "its pods"
		}
	}
	if q.size.stated == 0 {
		var nodes corev1.NodeList
		note("nodes, which say how many GPUs a pod can have", c.List(ctx, &nodes, client.HasLabels{p.flavorLabel}))
		q.size = podSize{fits: largestNode(nodes.Items, q.run.Spec.Resources.GPUType, p), from: "the nodes"}
	}
	return q, unread, nil
}

// selectorText prints a selector, sorted by key.
func selectorText(selector map[string]string) string {
	pairs := make([]string, 0, len(selector))
	for key, value := range selector {
		pairs = append(pairs, key+"="+value)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}
