package clitest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// Said is what a command has printed, and how it ended.
type Said struct {
	Out, Err string
	Code     int
}

// Do runs a command against an API server, in namespace rai, an hour after noon.
func Do(t testing.TB, server *Server, command func(*session.Session) *cobra.Command, args ...string) Said {
	t.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	flags := genericclioptions.NewConfigFlags(true)
	s := &session.Session{IOStreams: streams, Flags: flags, Now: func() time.Time { return Noon.Add(time.Hour) }}
	root := &cobra.Command{Use: "kubectl-runs", SilenceErrors: true, SilenceUsage: true}
	flags.AddFlags(root.PersistentFlags())
	cmd := command(s)
	root.AddCommand(cmd)
	root.SetOut(out)
	root.SetErr(errOut)
	kubeconfig := filepath.Join(t.TempDir(), "config")
	root.SetArgs(append([]string{cmd.Name(), "-s", server.URL, "-n", "rai", "--kubeconfig", kubeconfig}, args...))
	if err := os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := root.ExecuteContext(t.Context())
	said := Said{Out: out.String(), Err: errOut.String()}
	if err == nil {
		return said
	}
	said.Code, said.Err = session.ExitUsage, said.Err+err.Error()
	var failed *session.Failure
	if errors.As(err, &failed) {
		said.Code = failed.Code
	}
	return said
}
