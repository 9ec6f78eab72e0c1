// Package submit is "kubectl runs submit".
package submit

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/davidlangworthy/jobtree/pkg/cli/manifest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// submission is one "kubectl runs submit".
type submission struct {
	*session.Session
	output    *session.Output
	paths     []string
	recursive bool
	dryRun    string
	replace   bool          // Runs that have ended
	wait      time.Duration // for the scheduler's first word
}

// waitUsage is what the flag --wait does.
const waitUsage = "How long to wait for the scheduler's first answer; 0 does not wait."

// Command returns "kubectl runs submit".
func Command(s *session.Session) *cobra.Command {
	sub := &submission{Session: s}
	cmd := &cobra.Command{
		Use:        "submit FILE...",
		SuggestFor: []string{"create", "apply", "sbatch", "run"},
		Short:      "Create Runs, and Budgets, from files",
		Long: `Create Runs (runs.rq.davidlangworthy.io), and objects of jobtree's other kinds, from YAML or JSON.

A file may be a directory, an address that begins with https:// or http://, or "-" for standard input; -f names files
too. An https:// address may not redirect to one without TLS. A file may hold several documents and Lists. Unknown
fields, duplicate fields and values of the wrong type are refused. Nothing is created before all files have been read
and checked. Then each object is created separately: if the server refuses one, the others are still created, and the
exit code is 1. An object that already exists is refused; with --replace-finished a Run that has ended is replaced, and
its logs are deleted.

The command then waits for the scheduler's first answer on each Run, a second at most or as --wait says, and prints it
on standard error: that it runs, or why it waits and until when.`,
		Example: `  # Submit a Run to the namespace of the current context
  kubectl runs submit resnet-small.yaml

  # Submit it again once it has ended
  kubectl runs submit resnet-small.yaml --replace-finished

  # Submit every Run in a directory, and one from standard input
  kubectl runs submit runs/ - < trainer.yaml

  # Ask the server whether it would accept the Run, and create nothing
  kubectl runs submit resnet-small.yaml --dry-run=server`,
		RunE: s.RunE(sub.run),
	}
	sub.output = session.NewOutput(cmd, "created", "json, yaml, name")
	cmd.Flags().StringArrayVarP(&sub.paths, "file", "f", nil,
		`File, directory, address, or "-" for standard input; may be given several times. Also --filename.`)
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "filename" {
			name = "file"
		}
		return pflag.NormalizedName(name)
	})
	cmd.Flags().BoolVarP(&sub.recursive, "recursive", "R", false, "Read directories below the given ones too.")
	cmd.Flags().BoolVar(&sub.replace, "replace-finished", false, "Replace Runs of the same names that have ended.")
	session.DurationVar(cmd.Flags(), &sub.wait, "wait", time.Second, waitUsage)
	cmd.Flags().StringVar(&sub.dryRun, "dry-run", "none",
		"none, client (check the files only) or server (have the server check, too, and create nothing).")
	session.Must(cmd.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{"none", "client", "server"},
		cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func (s *submission) run(ctx context.Context, files []string) error {
	s.paths = append(files, s.paths...)
	if len(s.paths) == 0 {
		return session.Fail(session.ExitUsage, `name what to submit: kubectl runs submit FILE; "-" is standard input`)
	}
	if err := s.completeFlags(); err != nil {
		return err
	}
	entries, err := manifest.ReadEntries(ctx, s.paths, s.recursive, s.In)
	if err != nil {
		return err
	}
	c, namespace, explicit, err := s.Connect()
	if err != nil {
		return err
	}
	if err := manifest.SetNamespaces(entries, namespace, explicit); err != nil {
		return err
	}
	return s.submit(ctx, c, entries)
}

// submit creates objects, one after the other, and says what becomes of them.
func (s *submission) submit(ctx context.Context, c client.Client, entries []manifest.Entry) error {
	printer, err := s.output.Printer()
	if err != nil {
		return err
	}
	var refused []string
	var created []*unstructured.Unstructured
	if err := s.sign(ctx, c, entries); err != nil {
		return err
	}
	for _, e := range entries {
		if class := s.lacksClass(ctx, c, e.Object); class != "" {
			refused = append(refused, fmt.Sprintf("%v: %s", e.From, noClass(e.Object, class)))
			continue
		}
		if err := s.create(ctx, c, e.Object); err != nil {
			refused = append(refused, manifest.RefusedInWords(s.Session, e, err))
			continue
		}
		created = append(created, e.Object)
		if err := printer.PrintObj(e.Object, s.Out); err != nil {
			return err
		}
	}
	s.warn(ctx, c, created)
	s.foretell(ctx, c, created)
	s.tellVerdicts(ctx, c, created)
	s.hint(created)
	if len(refused) > 0 {
		return session.Fail(session.ExitError, "%s", strings.Join(refused, "\nError: "))
	}
	return nil
}

func (s *submission) completeFlags() error {
	suffix, ok := map[string]string{"none": "%s", "client": "%s (dry run)", "server": "%s (server dry run)"}[s.dryRun]
	if !ok {
		return session.Fail(session.ExitUsage, "--dry-run must be none, client or server, not %q", s.dryRun)
	}
	return s.output.Flags.Complete(suffix)
}

func (s *submission) create(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	switch s.dryRun {
	case "client":
		return nil
	case "server":
		return c.Create(ctx, object, client.DryRunAll)
	}
	err := c.Create(ctx, object)
	if apierrors.IsAlreadyExists(err) && isRun(object) {
		return s.createInPlace(ctx, c, object, err)
	}
	return err
}

// hint says on standard error how to follow the Runs that were created.
func (s *submission) hint(created []*unstructured.Unstructured) {
	names := map[string][]string{}
	var order []string
	for _, object := range created {
		if isRun(object) && s.dryRun == "none" {
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
