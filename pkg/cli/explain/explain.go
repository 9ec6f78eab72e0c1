// Package explain is "kubectl runs explain".
package explain

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/verify"
	"github.com/davidlangworthy/jobtree/pkg/cli/world"
)

// explainer is one "kubectl runs explain".
type explainer struct {
	*session.Session
	output *session.Output
	debugs bool
	verify string // name or file of the Reservation to check
}

// Command returns "kubectl runs explain".
func Command(s *session.Session) *cobra.Command {
	e := &explainer{Session: s}
	cmd := &cobra.Command{
		Use:        "explain RUN",
		SuggestFor: []string{"status", "describe", "show", "why"},
		Short:      "Explain the state of a Run, and check that a lottery was fair",
		Long: `Say why a Run is where it is: what it asks for, what happened to it, what it waits for, which nodes its groups
are on, who pays, what it has released, and what Reservations (reservations.rq.davidlangworthy.io) promise to it, may do
to it and have done to it. The answer comes from the Run, its GPU leases (leases.rq.davidlangworthy.io), the labels
of their nodes, the Reservations and the Events about the Run.

--verify runs the lottery of a Reservation again from its published record, and says whether the record is valid and
what differs. Name a Reservation, also as NAMESPACE/NAME, or a file: its name ends in .yaml, .yml or .json, contains a
slash and is no NAMESPACE/NAME, or is that of a file that is there; "-" is standard input. Checking a file needs no
cluster: save one with "kubectl get reservation NAME -o yaml". Only somebody who saw the commitment before the draw can
tell whether the file has the same one.

With -o json or yaml, --verify prints reservation, namespace, run, state, verdict (valid, invalid or unrevealed),
differs[], at, revealsAt, activatedAt, commitment, nonce, conflictSetDigest, seed, draws[] (owner, owners, run, tickets,
cut), cuts[].

--debug asks the leading scheduler for everything that it knows about the Run, and prints that as JSON. Attach it when
you report a Run that is stuck: the scheduler's decision can be repeated from it. The question is the ConfigMap
jobtree-dump in jobtree-system, which you must be allowed to create, read and delete.`,
		Example: `  kubectl runs explain trainer-64

  # The same as data
  kubectl runs explain trainer-64 -o json

  # Was the draw that ended my Run fair?
  kubectl runs explain --verify big-r0 -n rai

  # The same, anywhere, from a saved record
  kubectl runs explain --verify big-r0.yaml`,
		Args:              e.oneQuestion,
		RunE:              s.OnRuns(e.run),
		ValidArgsFunction: s.CompleteRuns,
	}
	e.output = session.NewAnswerOutput(cmd, "wide (nothing is left out), json, yaml, name")
	cmd.Flags().StringVar(&e.verify, "verify", "",
		`Run the lottery of this Reservation again, by name or from a file, and compare; "-" is standard input.`)
	cmd.Flags().BoolVar(&e.debugs, "debug", false,
		"For administrators: print as JSON everything that the scheduler knows about the Run.")
	session.Must(cmd.RegisterFlagCompletionFunc("verify", s.CompleteReservations))
	return cmd
}

// oneQuestion accepts either the name of a Run or --verify.
func (e *explainer) oneQuestion(cmd *cobra.Command, args []string) error {
	switch {
	case !cmd.Flags().Changed("verify"):
		return session.RunNames(1, 1)(cmd, args)
	case len(e.verify) > 1 && e.verify[0] == '-':
		return session.Fail(session.ExitUsage, "--verify is followed by the Reservation or file to check, other flags "+
			"come before or behind: %s --verify RESERVATION -n NAMESPACE", cmd.CommandPath())
	case len(args) > 0:
		return session.Fail(session.ExitUsage, "--verify checks a Reservation: leave out the Run %q", args[0])
	case e.verify == "":
		return session.Fail(session.ExitUsage, "name a Reservation or a file to check: %s --verify RESERVATION|FILE",
			cmd.CommandPath())
	}
	return nil
}

func (e *explainer) run(ctx context.Context, args []string) error {
	if err := e.output.Check(); err != nil {
		return err
	}
	if e.verify != "" {
		r, err := recordOf(ctx, e.Session, e.verify)
		if err != nil {
			return err
		}
		return verify.PrintVerification(e.Out, e.output, verify.Run(r, e.Now()))
	}
	c, namespace, _, err := e.Connect()
	if err != nil {
		return err
	}
	if e.debugs {
		return debug(ctx, e.Session, c, types.NamespacedName{Namespace: namespace, Name: args[0]})
	}
	story, err := e.read(ctx, c, client.ObjectKey{Namespace: namespace, Name: args[0]})
	if err != nil {
		return err
	}
	if e.output.ForPeople() {
		session.Show(ctx, c, namespace, &story)
		return writeExplanation(e.Out, story, e.FormOf(e.output), printers.AllowsColorOutput(e.Out))
	}
	return e.output.PrintData(e.Out, story, session.About("Run", story.Run))
}

// read gathers what the explanation is made of. What the user may not read is named in it, and does not stop it.
func (e *explainer) read(ctx context.Context, c client.Client, key client.ObjectKey) (explanation, error) {
	var run rqv1.Run
	if err := c.Get(ctx, key, &run); err != nil {
		return explanation{}, e.NotFoundInWords(err, key.Namespace, key.Name)
	}
	var unread []string
	note := func(what string, err error) {
		if err != nil {
			unread = append(unread, fmt.Sprintf("%s: %s", what, session.Refusal(err)))
		}
	}
	leases, err := e.ReadLeases(ctx, c, key.Namespace, []string{key.Name}, &client.ListOptions{})
	note("GPU leases", err)
	var events corev1.EventList
	note("events", c.List(ctx, &events, client.InNamespace(key.Namespace), client.MatchingFields{
		"involvedObject.kind": "Run", "involvedObject.name": key.Name, "involvedObject.uid": string(run.UID)}))
	var nodes nodeFacts
	if len(leases) > 0 {
		nodes, err = e.nodes(ctx, c)
		if apierrors.IsForbidden(err) { // so it is for most people
			unread, err = append(unread, "Nodes: their domains and the times of their losses are not shown"), nil
		}
		note("Nodes, which say in which domain they are and when they were lost", err)
	}
	if nodes.guessed != "" {
		unread = append(unread, nodes.guessed)
	}
	reservations, err := session.ReadReservations(ctx, c, key.Namespace)
	note("Reservations, which say who may cut or has cut the Run", err)
	story := explain(&run, evidence{e.Now(), leases, nodes, reservations, events.Items})
	story.Unread = unread
	return story, nil
}

// nodes returns what is said of every node: its domain, which is the values of the topology's labels, widest first,
// and the record of its loss.
func (e *explainer) nodes(ctx context.Context, c client.Client) (nodeFacts, error) {
	nodes := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}}
	if err := c.List(ctx, &nodes); err != nil {
		return nodeFacts{}, err
	}
	args, guessed, err := world.SchedulerArgs(ctx, c)
	if err != nil {
		return nodeFacts{}, err
	}
	levels := args.TopologyLevels
	facts := nodeFacts{domains: map[string]string{}, lost: map[string]string{}, guessed: guessed}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		values := make([]string, len(levels))
		for j, level := range levels {
			values[j] = node.Labels[level]
		}
		facts.domains[node.Name] = strings.Join(values, "/")
		if record := node.Annotations[rqv1.AnnotationLost]; record != "" {
			facts.lost[node.Name] = record
		}
	}
	return facts, nil
}
