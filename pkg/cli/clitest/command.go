package clitest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// Maker makes a command.
type Maker = func(*session.Session) *cobra.Command

// Do runs a command against an API server, in namespace rai, an hour after noon. Its standard input is empty.
func Do(t testing.TB, server *Server, command Maker, args ...string) Said {
	t.Helper()
	return DoAt(t, server, Noon.Add(time.Hour), command, args...)
}

// DoAt runs a command against an API server, in namespace rai unless arguments say otherwise, at an instant.
func DoAt(t testing.TB, server *Server, now time.Time, command Maker, args ...string) Said {
	t.Helper()
	return do(t, server, command, typing{now: now}, args)
}

// Ask does likewise, with somebody at a terminal who types an answer.
func Ask(t testing.TB, server *Server, command Maker, typed string, args ...string) Said {
	t.Helper()
	return do(t, server, command, typing{typed: typed, seated: true, now: Noon.Add(time.Hour)}, args)
}

// typing is who gives a command, and when: what somebody types, who may sit at a terminal.
type typing struct {
	typed  string
	seated bool
	now    time.Time
	// here says that the kubeconfig names the namespace, and not the command line.
	here bool
}

// DoHere runs a command in namespace rai as one does whose kubeconfig says so.
func DoHere(t testing.TB, server *Server, command Maker, args ...string) Said {
	t.Helper()
	return do(t, server, command, typing{now: Noon.Add(time.Hour), here: true}, args)
}

func do(t testing.TB, server *Server, command Maker, by typing, args []string) Said {
	t.Helper()
	var out, errOut bytes.Buffer
	said := run(t, server, command, streams{strings.NewReader(by.typed), &out, &errOut}, by, args)
	said.Out, said.Err = out.String(), errOut.String()+said.Err
	return said
}

// streams are what a command reads and writes.
type streams struct {
	in          io.Reader
	out, errOut io.Writer
}

// run runs a command. What is said by it is the error that it ends with.
func run(t testing.TB, server *Server, command Maker, with streams, by typing, args []string) Said {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(true)
	s := &session.Session{IOStreams: genericiooptions.IOStreams{In: with.in, Out: with.out, ErrOut: with.errOut},
		Flags: flags, Now: func() time.Time { return by.now }, Seated: by.seated}
	root := &cobra.Command{Use: "kubectl-runs", SilenceErrors: true, SilenceUsage: true}
	flags.AddFlags(root.PersistentFlags())
	cmd := command(s)
	root.AddCommand(cmd)
	root.SetOut(with.out)
	root.SetErr(with.errOut)
	kubeconfig := filepath.Join(t.TempDir(), "config")
	config, where := "apiVersion: v1\nkind: Config\n", []string{"-n", "rai"}
	if by.here {
		config, where = config+"current-context: it\ncontexts: [{name: it, context: {namespace: rai}}]\n", nil
	}
	root.SetArgs(slices.Concat([]string{cmd.Name(), "-s", server.URL, "--kubeconfig", kubeconfig}, where, args))
	if err := os.WriteFile(kubeconfig, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	err := root.ExecuteContext(t.Context())
	if err == nil {
		return Said{}
	}
	said := Said{Code: session.ExitUsage, Err: err.Error()}
	var failed *session.Failure
	if errors.As(err, &failed) {
		said.Code = failed.Code
	}
	return said
}
