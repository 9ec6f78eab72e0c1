package submit

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/manifest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/cli/world"
)

// newRun is one "kubectl runs new".
type newRun struct {
	submission
	owner, gpuType, image           string
	gpus, gpusPerPod, group, spares int32
	maxDuration, checkpoint         time.Duration
	onTimeout                       string
	opportunistic, suspend          bool
	env                             map[string]string
}

// New returns "kubectl runs new".
func New(s *session.Session) *cobra.Command {
	n := &newRun{submission: submission{Session: s, dryRun: "none"}}
	cmd := &cobra.Command{
		Use:        "new [NAME] --gpus GPUS [-- COMMAND [ARG...]]",
		SuggestFor: []string{"init", "srun"},
		Short:      "Create a Run from one line, or print it as YAML",
		Long: `Create a Run from one line: how many GPUs, in which image, which command. With -o yaml or json nothing is
created: the Run is printed, so that you can save it in a file, change it and submit it.

Without --owner, the Run spends as the owner that you may spend as in the namespace, if there is only one. Without
--type, it asks for the GPU type of the fleet, if there is only one. Without a name, it gets one that begins with
"run-". Without --image, its pods hold the GPUs and do nothing.

The command then waits for the scheduler's first answer, as "kubectl runs submit" does.`,
		Example: `  # Train on 16 GPUs for at most two hours
  kubectl runs new hello --gpus 16 --image registry.example.com/train:1.0 --max-duration 2h -- torchrun train.py

  # Keep it as a file
  kubectl runs new hello --gpus 16 --owner org:ai:mm --type H100-80GB -o yaml > hello.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			names := len(args)
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				names = dash
			}
			switch {
			case names > 1:
				return session.Fail(session.ExitUsage, "give one name, and the command after two dashes: %s", cmd.UseLine())
			case n.gpus < 1:
				return session.Fail(session.ExitUsage, "set the number of GPUs, such as --gpus 16")
			case len(args) > names && n.image == "":
				return session.Fail(session.ExitUsage, "set the image in which the command runs: --image IMAGE")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			names := args
			var command []string
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				names, command = args[:dash], args[dash:]
			}
			return s.RunE(func(ctx context.Context, names []string) error { return n.run(ctx, names, command) })(cmd, names)
		},
	}
	n.addFlags(cmd)
	return cmd
}

func (n *newRun) addFlags(cmd *cobra.Command) {
	n.output = session.NewOutput(cmd, "created", "yaml, json")
	flags := cmd.Flags()
	flags.Int32Var(&n.gpus, "gpus", 0, "Number of GPUs, in total.")
	flags.StringVar(&n.gpuType, "type", "", "Type of the GPUs, such as H100-80GB.")
	flags.StringVar(&n.owner, "owner", "", "Owner who pays, such as org:ai:rai.")
	flags.StringVar(&n.image, "image", "", "Image of the container that runs the command.")
	flags.StringToStringVar(&n.env, "env", nil, "Environment of the command, such as SEED=1,LR=0.1.")
	flags.Int32Var(&n.gpusPerPod, "gpus-per-pod", 0, "GPUs of one pod; 0 leaves that to the scheduler.")
	flags.Int32Var(&n.group, "group-gpus", 0, "GPUs that must share a fast fabric; 0 for no groups.")
	flags.Int32Var(&n.spares, "spares", 0, "GPUs that stand by for each group.")
	session.DurationVar(flags, &n.maxDuration, "max-duration", 0,
		"Time after which the Run is ended, such as 2h or 3d; 0 for never.")
	session.DurationVar(flags, &n.checkpoint, "checkpoint", 0,
		"How often the program saves its work, such as 30m, so that it may be started again.")
	flags.StringVar(&n.onTimeout, "on-timeout", "", "What happens after --max-duration: Fail (the default), or Requeue: "+
		"the Run waits again, at the end of the queue, and starts from its checkpoint.")
	flags.BoolVar(&n.opportunistic, "opportunistic", false, "Use idle GPUs, and give them back on demand.")
	flags.BoolVar(&n.suspend, "suspend", false, "Hold the Run back until it is resumed.")
	session.DurationVar(flags, &n.wait, "wait", time.Second, waitUsage)
	session.Must(cmd.RegisterFlagCompletionFunc("owner", n.CompleteOwners))
	session.Must(cmd.RegisterFlagCompletionFunc("type", n.completeTypes))
	session.Must(cmd.RegisterFlagCompletionFunc("on-timeout",
		cobra.FixedCompletions(timeoutActions, cobra.ShellCompDirectiveNoFileComp)))
}

// timeoutActions are what may become of a Run whose time is over.
var timeoutActions = []string{string(rqv1.TimeoutFail), string(rqv1.TimeoutRequeue)}

// parseTimeout accepts what is to become of the Run in any case.
func (n *newRun) parseTimeout() error {
	if n.onTimeout == "" {
		return nil
	}
	at := slices.IndexFunc(timeoutActions, func(a string) bool { return strings.EqualFold(a, n.onTimeout) })
	switch {
	case at < 0:
		return session.Fail(session.ExitUsage, "--on-timeout %q: choose %s", n.onTimeout,
			strings.Join(timeoutActions, " or "))
	case n.maxDuration <= 0:
		return session.Fail(session.ExitUsage, "--on-timeout needs --max-duration, such as --max-duration 12h")
	case timeoutActions[at] == string(rqv1.TimeoutRequeue) && n.checkpoint <= 0:
		return session.Fail(session.ExitUsage, "--on-timeout Requeue needs --checkpoint, such as --checkpoint 30m: the "+
			"Run starts again from what it has saved")
	case timeoutActions[at] == string(rqv1.TimeoutRequeue) && n.maxDuration < time.Minute:
		return session.Fail(session.ExitUsage, "--on-timeout Requeue needs a --max-duration of at least 1m")
	}
	n.onTimeout = timeoutActions[at]
	return nil
}

func (n *newRun) completeTypes(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	c, _, _, err := n.Connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	types, _ := world.GPUTypes(cmd.Context(), c) // completion has nowhere to show an error
	return types, cobra.ShellCompDirectiveNoFileComp
}

func (n *newRun) run(ctx context.Context, names, command []string) error {
	if err := n.output.Check(); err != nil {
		return err
	}
	if err := n.parseTimeout(); err != nil {
		return err
	}
	prints := *n.output.Flags.OutputFormat != ""
	c, namespace, _, err := n.Connect()
	if err != nil {
		return err
	}
	if err := n.complete(ctx, c, namespace); err != nil {
		return err
	}
	object, err := manifest.Written(n.asked(names, namespace, command))
	if err != nil {
		return err
	}
	if prints {
		printer, err := n.output.Printer()
		if err != nil {
			return err
		}
		return printer.PrintObj(object, n.Out)
	}
	return n.submit(ctx, c, []manifest.Entry{manifest.Typed(object)})
}

// complete fills in what there is no choice about.
func (n *newRun) complete(ctx context.Context, c client.Client, namespace string) error {
	if n.gpuType == "" {
		types, err := world.GPUTypes(ctx, c)
		switch {
		case err != nil:
			return err
		case len(types) != 1:
			return session.Fail(session.ExitUsage, "set the type of GPU with --type%s", choices(types))
		}
		n.gpuType = types[0]
	}
	if n.owner == "" {
		owners := ownersOf(ctx, c, namespace)
		if len(owners) != 1 {
			return session.Fail(session.ExitUsage, "set the owner who pays with --owner%s", choices(owners))
		}
		n.owner = owners[0]
	}
	return nil
}

// choices lists what there is to choose from.
func choices(of []string) string {
	if len(of) == 0 {
		return ""
	}
	return "; there are " + strings.Join(of, ", ")
}

// ownersOf returns the owners by name as whom somebody may spend in a namespace; none where that is not known, or
// anybody will do.
func ownersOf(ctx context.Context, c client.Client, namespace string) []string {
	review := &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	if err := c.Create(ctx, review); err != nil {
		return nil
	}
	var owners []string
	for _, rule := range review.Status.ResourceRules {
		if slices.Contains(rule.Verbs, "use") && slices.Contains(rule.APIGroups, rqv1.GroupName) &&
			slices.Contains(rule.Resources, "owners") {
			owners = append(owners, rule.ResourceNames...)
		}
	}
	slices.Sort(owners)
	return slices.Compact(owners)
}

// asked is the Run that is asked for.
func (n *newRun) asked(names []string, namespace string, command []string) *rqv1.Run {
	run := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "run-"}, Spec: rqv1.RunSpec{
		Owner: rqv1.Owner(n.owner), Resources: rqv1.RunResources{GPUType: n.gpuType, TotalGPUs: n.gpus},
		Opportunistic: n.opportunistic, Suspend: n.suspend}}
	if len(names) > 0 {
		run.Name, run.GenerateName = names[0], ""
	}
	run.Spec.Resources.GPUsPerPod, run.Spec.SparesPerGroup = positive(n.gpusPerPod), positive(n.spares)
	if n.group > 0 {
		run.Spec.Locality = &rqv1.RunLocality{GroupGPUs: &n.group}
	}
	if n.maxDuration > 0 || n.checkpoint > 0 {
		run.Spec.Runtime = &rqv1.RunRuntime{MaxDuration: duration(n.maxDuration), Checkpoint: duration(n.checkpoint),
			OnTimeout: rqv1.TimeoutAction(n.onTimeout)}
	}
	if n.image == "" {
		return run
	}
	container := corev1.Container{Name: "main", Image: n.image, Command: command}
	for name, value := range n.env {
		container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
	}
	slices.SortFunc(container.Env, func(a, b corev1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
	run.Spec.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{container}}}
	return run
}

func positive(n int32) *int32 {
	if n <= 0 {
		return nil
	}
	return &n
}

func duration(d time.Duration) *metav1.Duration {
	if d <= 0 {
		return nil
	}
	return ptr.To(metav1.Duration{Duration: d})
}
