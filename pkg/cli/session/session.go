// Package session is what every command of "kubectl runs" shares: the connection to a cluster, what is read of it,
// how answers are printed, and how errors are told.
package session

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Session is what every command shares: where to read and write, which cluster to talk to, and what time it is.
type Session struct {
	genericiooptions.IOStreams
	Flags *genericclioptions.ConfigFlags
	Now   func() time.Time
	// Seated says that somebody sits at In, whatever that is. A terminal is found without it.
	Seated bool

	namespace string            // the one that the names of Runs on the command line begin with; empty where none does
	called    map[string]string // what the command line calls Runs, by their own names
	known     []string          // the namespaces looked into by who may not read all; nil until they are looked for
	read      []string          // those in which was read, as it was last told
}

// RunE adapts a command's body to cobra: its error is put into words for people.
func (s *Session) RunE(body func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := body(cmd.Context(), args); err != nil {
			return s.InWords(err)
		}
		return nil
	}
}

// RunNames accepts between least and most names of Runs as arguments.
func RunNames(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return Fail(ExitUsage, "name a Run: %s", cmd.UseLine())
		case len(args) > most:
			return Fail(ExitUsage, "%s takes the name of one Run, not %d", cmd.CommandPath(), len(args))
		}
		return nil
	}
}
