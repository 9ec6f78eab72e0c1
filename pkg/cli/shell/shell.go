// Package shell is "kubectl runs shell" and "kubectl runs exec".
package shell

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/ranks"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// visit is one "kubectl runs shell" or "kubectl runs exec".
type visit struct {
	*session.Session
	rank      string
	container string
	stdin     bool
	tty       bool
	command   []string
}

// interactive starts the better of the shells that an image may have.
var interactive = []string{"sh", "-c", "command -v bash >/dev/null 2>&1 && exec bash; exec sh"}

// Shell returns "kubectl runs shell".
func Shell(s *session.Session) *cobra.Command {
	v := &visit{Session: s}
	cmd := &cobra.Command{
		Use:        "shell RUN",
		SuggestFor: []string{"ssh", "bash", "salloc"},
		Short:      "Open a shell beside a rank of a Run",
		Long: `Open a shell in the container of a rank: the lowest rank that has a pod, or the one that --rank names. It is
bash, or sh in an image without bash. The shell ends with the rank. The exit code is that of the shell.

You need the right to create pods/exec, which the built-in role edit has.`,
		Example: `  # Look at the GPUs of rank 3
  kubectl runs shell hello --rank 3`,
		Args: session.RunNames(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			v.stdin, v.tty, v.command = true, printers.IsTerminal(v.In), interactive
			return v.OnRuns(v.run)(cmd, args)
		},
		ValidArgsFunction: s.CompleteRuns,
	}
	v.addFlags(cmd)
	return cmd
}

// Exec returns "kubectl runs exec".
func Exec(s *session.Session) *cobra.Command {
	v := &visit{Session: s}
	cmd := &cobra.Command{
		Use:   "exec RUN -- COMMAND [ARG...]",
		Short: "Run a command beside a rank of a Run",
		Long: `Run a command in the container of a rank: the lowest rank that has a pod, or the one that --rank names. If that
is not rank 0, standard error says which it is. The exit code is that of the command. For a shell, see "kubectl runs
shell".

You need the right to create pods/exec, which the built-in role edit has.`,
		Example: `  # See what the GPUs of rank 0 are doing
  kubectl runs exec hello -- nvidia-smi

  # A debugger in rank 3, on a terminal
  kubectl runs exec hello --rank 3 -it -- py-spy top --pid 1`,
		Args: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); dash != 1 || len(args) < 2 {
				return session.Fail(session.ExitUsage, "name a Run and, after two dashes, a command: %s", cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			v.command = args[1:]
			if v.tty && !printers.IsTerminal(v.In) {
				return session.Fail(session.ExitUsage, "standard input is not a terminal: leave out -t")
			}
			return v.OnRuns(v.run)(cmd, args[:1])
		},
		ValidArgsFunction: s.CompleteRuns,
	}
	v.addFlags(cmd)
	cmd.Flags().BoolVarP(&v.stdin, "stdin", "i", false, "Pass standard input to the command.")
	cmd.Flags().BoolVarP(&v.tty, "tty", "t", false, "Give the command a terminal.")
	return cmd
}

func (v *visit) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&v.rank, "rank", "", "The rank, from 0.")
	cmd.Flags().StringVarP(&v.container, "container", "c", "", "The container, if it is not the first.")
}

func (v *visit) run(ctx context.Context, names []string) error {
	var wanted []int
	if v.rank != "" {
		var err error
		if wanted, err = ranks.Parse([]string{v.rank}); err != nil || len(wanted) != 1 {
			return session.Fail(session.ExitUsage, "--rank takes the number of one rank, not %q", v.rank)
		}
	}
	c, namespace, _, err := v.Connect()
	if err != nil {
		return err
	}
	var run rqv1.Run
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: names[0]}, &run); err != nil {
		return v.NotFoundInWords(err, namespace, names[0])
	}
	set, err := ranks.Read(ctx, c, &run)
	if err != nil {
		return err
	}
	if len(wanted) == 0 {
		wanted = set.Ranks()
	}
	index := 0
	if len(wanted) > 0 {
		index = wanted[0]
	}
	pod, err := set.Pod(index)
	if err != nil {
		return err
	}
	container, err := v.open(&run, pod, index)
	if err != nil {
		return err
	}
	if v.tty || v.rank == "" && index != 0 {
		fmt.Fprintf(v.ErrOut, "Rank %d of Run %s (pod %s on node %s)\n", index, session.NameOf(&run), pod.Name,
			pod.Spec.NodeName)
	}
	return v.execute(ctx, pod, container, index)
}

// open returns the container to go to, if that runs.
func (v *visit) open(run *rqv1.Run, pod *corev1.Pod, index int) (string, error) {
	container, err := ranks.Container(pod, v.container)
	switch {
	case err != nil:
		return "", err
	case rank.Ended(pod):
		return "", session.Fail(session.ExitError, "rank %d of Run %s has ended: its pod is %s; see what it printed with "+
			"\"kubectl runs logs -n %s %s --rank %d\"", index, session.NameOf(run), pod.Status.Phase, run.Namespace,
			session.NameOf(run), index)
	case !ranks.Started(pod, container):
		return "", session.Fail(session.ExitError, "rank %d of Run %s has not started yet: its pod is %s", index,
			session.NameOf(run), pod.Status.Phase)
	}
	return container, nil
}
