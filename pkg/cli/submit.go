package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// submission is one "kubectl runs submit".
type submission struct {
	*session
	output    *output
	paths     []string
	recursive bool
	dryRun    string
}

// entry is an object to submit and the document that it comes from.
type entry struct {
	from   document
	object *unstructured.Unstructured
}

func (s *session) submitCommand() *cobra.Command {
	sub := &submission{session: s}
	cmd := &cobra.Command{
		Use:   "submit -f FILE",
		Short: "Create Runs, and Budgets, from files",
		Long: `Create Runs (runs.rq.davidlangworthy.io), and objects of jobtree's other kinds, from YAML or JSON.

A file may hold several documents and Lists. Unknown fields, fields given twice and values of the wrong type are
refused. Nothing is created before every file has been read and checked; after that each object is created on its own,
so an object that the server refuses does not stop the others, and the exit code is 1. An object that exists already is
refused: a submitted Run is not replaced.`,
		Example: `  # Submit a Run to the namespace of the current context
  kubectl runs submit -f resnet-small.yaml

  # Submit every Run in a directory, and one from standard input
  kubectl runs submit -f runs/ -f - < trainer.yaml

  # Ask the server whether it would accept the Run, and create nothing
  kubectl runs submit -f resnet-small.yaml --dry-run=server`,
		Args: cobra.NoArgs,
		RunE: s.runE(sub.run),
	}
	sub.output = newOutput(cmd, "created", "json, yaml, name")
	cmd.Flags().StringArrayVarP(&sub.paths, "file", "f", nil, `File, directory, or "-" for standard input; may be given several times. Also --filename.`)
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "filename" {
			name = "file"
		}
		return pflag.NormalizedName(name)
	})
	cmd.Flags().BoolVarP(&sub.recursive, "recursive", "R", false, "Read directories below the given ones too.")
	cmd.Flags().StringVar(&sub.dryRun, "dry-run", "none", "none, client (check the files only) or server (have the server check, too, and create nothing).")
	must(cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{"none", "client", "server"}, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func (s *submission) run(ctx context.Context, _ []string) error {
	if err := s.completeFlags(); err != nil {
		return err
	}
	printer, err := s.output.printer()
	if err != nil {
		return err
	}
	entries, err := s.read()
	if err != nil {
		return err
	}
	c, namespace, explicit, err := s.connect()
	if err != nil {
		return err
	}
	if err := setNamespaces(entries, namespace, explicit); err != nil {
		return err
	}
	var refused []string
	var created []*unstructured.Unstructured
	for _, e := range entries {
		if err := s.create(ctx, c, e.object); err != nil {
			refused = append(refused, s.refusedInWords(e, err))
			continue
		}
		created = append(created, e.object)
		if err := printer.PrintObj(e.object, s.Out); err != nil {
			return err
		}
	}
	s.hint(created)
	if len(refused) > 0 {
		return fail(exitError, "%s", strings.Join(refused, "\nError: "))
	}
	return nil
}

func (s *submission) completeFlags() error {
	if len(s.paths) == 0 {
		return fail(exitUsage, `say what to submit with -f FILE; "-" is standard input`)
	}
	suffix, ok := map[string]string{"none": "%s", "client": "%s (dry run)", "server": "%s (server dry run)"}[s.dryRun]
	if !ok {
		return fail(exitUsage, "--dry-run must be none, client or server, not %q", s.dryRun)
	}
	return s.output.flags.Complete(suffix)
}

func (s *submission) create(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	switch s.dryRun {
	case "client":
		return nil
	case "server":
		return c.Create(ctx, object, client.DryRunAll)
	}
	return c.Create(ctx, object)
}

func (s *submission) refusedInWords(e entry, err error) string {
	var status apierrors.APIStatus
	switch {
	case !errors.As(err, &status) || isMissingKind(err):
		return s.inWords(err).Error()
	case apierrors.IsAlreadyExists(err):
		return fmt.Sprintf("%v: %s exists already; delete it first or choose another name", e.from, describe(e.object))
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("%v: %s: %s; create the namespace first", e.from, describe(e.object), refusal(err))
	}
	return fmt.Sprintf("%v: the server refused %s:%s", e.from, describe(e.object), afterColon(refusal(err)))
}

// afterColon sets a message off from the colon before it, unless it starts a line of its own.
func afterColon(message string) string {
	if strings.HasPrefix(message, "\n") {
		return message
	}
	return " " + message
}

// describe names an object: its kind, and its namespace and name.
func describe(object *unstructured.Unstructured) string {
	name := object.GetName()
	if name == "" {
		name = object.GetGenerateName() + "*"
	}
	if object.GetNamespace() != "" {
		name = object.GetNamespace() + "/" + name
	}
	return object.GetKind() + " " + name
}

// hint says on standard error how to follow the Runs that were created.
func (s *submission) hint(created []*unstructured.Unstructured) {
	names := map[string][]string{}
	var order []string
	for _, object := range created {
		if object.GetKind() == "Run" && s.dryRun == "none" {
			if names[object.GetNamespace()] == nil {
				order = append(order, object.GetNamespace())
			}
			names[object.GetNamespace()] = append(names[object.GetNamespace()], object.GetName())
		}
	}
	for _, namespace := range order {
		fmt.Fprintf(s.ErrOut, "Follow with: kubectl runs watch -n %s %s\n", namespace, strings.Join(names[namespace], " "))
	}
}
