// Package imports is "kubectl runs import".
package imports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/davidlangworthy/jobtree/pkg/cli/manifest"
	"github.com/davidlangworthy/jobtree/pkg/cli/sbatch"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// importer is one "kubectl runs import".
type importer struct {
	*session.Session
	output  *session.Output
	choices sbatch.Choices
	owners  map[string]string // of the queues of Kueue
}

// Command returns "kubectl runs import".
func Command(s *session.Session) *cobra.Command {
	im := &importer{Session: s}
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Convert a batch script of Slurm, or workloads of Kueue, and print the result",
		Long: `Convert a Slurm batch script to a Run, or workloads written for Kueue to workloads for jobtree, and print the
result. The command does not contact a cluster and creates nothing: review the output, then submit or apply it.

The #SBATCH lines before the script's first command say what the Run asks for, as sbatch reads them. The script itself,
from its first command on, becomes the command of the pods' container, in the image that --image names. There is one pod
for each node of the job, with the GPUs that the script asks for on a node.

Options that a Run has no equivalent for, and features that only Slurm has, get a warning on standard error, with the
line and what to do instead. Malformed or contradictory directives are refused. Directives of PBS and LSF are not read.

A file of API objects, such as Jobs and JobSets, is treated as workloads of Kueue. Objects with the label
kueue.x-k8s.io/queue-name get an annotation with the owner that --queue-owner names for that queue, or --owner for all,
and schedulerName: jobtree in their pod templates. What belongs to Kueue is removed: the label, suspend: true, gates and
finalizers. What has no equivalent in jobtree is reported on standard error. Other objects are printed unchanged.

FILE "-" is standard input.`,
		Example: `  # Look at the Run that a script becomes
  kubectl runs import train.sbatch --owner org:ai:rai --gpu-type H100-80GB --image registry.example.com/rai/train:1.0

  # Submit it, with a checkpoint so that it starts again after a cut or the loss of a node
  kubectl runs import train.sbatch --owner org:ai:rai --image registry.example.com/rai/train:1.0 --checkpoint 30m |
    kubectl runs submit -f -

  # Convert a workload written for Kueue, and see what would happen before you apply it
  kubectl runs import jobset.yaml --queue-owner team-a=org:ai:rai > here.yaml
  kubectl runs plan -f here.yaml && kubectl apply -f here.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return session.Fail(session.ExitUsage, `name the batch script, or the file of objects, to import: `+
					`kubectl runs import FILE; "-" is standard input`)
			}
			return nil
		},
		RunE: s.RunE(im.run),
	}
	im.output = session.NewOutput(cmd, "", "yaml, json")
	cmd.Flags().Lookup("show-managed-fields").Hidden = true
	*im.output.Flags.OutputFormat = "yaml"
	cmd.Flags().Lookup("output").DefValue = "yaml"
	flags, c := cmd.Flags(), &im.choices
	flags.StringVar(&c.Owner, "owner", "", "Owner who pays, such as org:ai:rai. Default: the script's --account, as "+
		"it is.")
	flags.StringVar(&c.GPUType, "gpu-type", "", "Type of the GPUs as nodes call it, such as H100-80GB. Default: as "+
		"the script calls it.")
	flags.StringVar(&c.Image, "image", "", "Image of the container that runs the script.")
	flags.StringVar(&c.PriorityClass, "priority-class", "", "PriorityClass that orders the Run among those of its owner.")
	flags.StringToStringVar(&im.owners, "queue-owner", nil, "Owner who pays for the workloads of a queue of Kueue, such "+
		"as "+
		"team-a=org:ai:rai; once for each queue.")
	session.DurationVar(flags, &c.Checkpoint, "checkpoint", 0,
		"How often the program saves, such as 30m, so that it may be started again.")
	session.Must(cmd.RegisterFlagCompletionFunc("owner", s.CompleteOwners))
	return cmd
}

func (im *importer) run(_ context.Context, args []string) error {
	printer, err := im.output.Printer()
	if err != nil {
		return err
	}
	text, err := im.read(args[0])
	if err != nil {
		return err
	}
	choices, source := im.choices, manifest.Source(args[0])
	if hasObjects(text) {
		return im.workloads(args[0], text, printer)
	}
	if len(im.owners) > 0 {
		return session.Fail(session.ExitUsage, "--queue-owner is for workloads of Kueue: %s is a batch script, so say "+
			"--owner",
			source)
	}
	choices.Namespace = *im.Flags.Namespace
	if args[0] == manifest.Stdin {
		choices.Name = "sbatch" // as sbatch names such a job
	} else {
		choices.Name = sbatch.NameOfFile(args[0])
	}
	script, err := sbatch.Parse(text)
	if err != nil {
		return session.Fail(session.ExitError, "%s: %v", source, err)
	}
	run, notes, err := sbatch.Translate(script, choices)
	if err != nil {
		return session.Fail(session.ExitError, "%s: %v", source, err)
	}
	for _, n := range notes {
		fmt.Fprintf(im.ErrOut, "Warning: %s: %v\n", source, n)
	}
	object, err := manifest.Written(run)
	if err != nil {
		return err
	}
	return printer.PrintObj(object, im.Out)
}

// read returns the text of a file.
func (im *importer) read(file string) (string, error) {
	read := func() ([]byte, error) { return os.ReadFile(file) }
	if file == manifest.Stdin {
		read = func() ([]byte, error) { return io.ReadAll(im.In) }
	}
	text, err := read()
	if err != nil {
		return "", session.Fail(session.ExitError, "cannot read %s: %v", manifest.Source(file), errors.Unwrap(err))
	}
	return string(text), nil
}
