package cli

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/component-base/version"

	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

func versionCommand(s *session.Session) *cobra.Command {
	var clientOnly bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of kubectl runs and of the API server",
		Args:  cobra.NoArgs,
		RunE: s.RunE(func(_ context.Context, _ []string) error {
			fmt.Fprintf(s.Out, "Client: %s\n", clientVersion())
			if clientOnly {
				return nil
			}
			discovery, err := s.Flags.ToDiscoveryClient()
			if err != nil {
				return err
			}
			server, err := discovery.ServerVersion()
			if err != nil {
				return err
			}
			fmt.Fprintf(s.Out, "Server: %s\n", server.GitVersion)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&clientOnly, "client", false, "Print the version of kubectl runs only.")
	return cmd
}

// clientVersion is the version that make stamps, or else the one that the Go command derives from the checkout.
func clientVersion() string {
	stamped := version.Get().GitVersion
	if build, ok := debug.ReadBuildInfo(); ok && strings.Contains(stamped, "$Format") {
		return build.Main.Version
	}
	return stamped
}
