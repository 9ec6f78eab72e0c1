package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// The command line is checked before a cluster is looked for.
func TestUsage(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	for name, c := range map[string]struct {
		args string
		code int
		want string
	}{
		"unknown command": {"foo", session.ExitUsage, `unknown command "foo"`},
		"another word":    {"squeue", session.ExitUsage, `unknown command "squeue" for "kubectl runs"; did you mean list?`},
		"a near word":     {"scancel x", session.ExitUsage, `did you mean cancel?; see`},
		"a kind":          {"reservations", session.ExitUsage, `did you mean plan?; see`},
		"list of Budgets": {"budgets list --tree -o json", session.ExitUsage, "--tree cannot be combined"},
		"a mistyped one":  {"expain x", session.ExitUsage, `did you mean explain?; see "kubectl runs --help"`},
		"an odd order":    {"list --sort-by agee", session.ExitUsage, `did you mean age?; choose from name, age`},
		"all the logs":    {"logs a --all --rank 1", session.ExitUsage, "--all and --rank cannot be combined"},
		"no width":        {"grow a", session.ExitUsage, "give --by or --to; see"},
		"unknown flag":    {"list --foo", session.ExitUsage, "unknown flag: --foo"},
		"no file":         {"submit", session.ExitUsage, "name what to submit: kubectl runs submit FILE"},
		"dry run":         {"submit -f x --dry-run=yes", session.ExitUsage, "--dry-run must be none, client or server"},
		"missing file": {"submit -f /nowhere/x.yaml", session.ExitError,
			"cannot read /nowhere/x.yaml: no such file or directory"},
		"phase": {"list --phase Started", session.ExitUsage,
			`"Started" is not a phase of a Run; choose from Pending, Running, Completed, Failed`},
		"format": {"leases -o table", session.ExitUsage,
			`--output "table" is not a format of this command; choose from wide`},
		"explain nothing":     {"explain", session.ExitUsage, "name a Run: kubectl runs explain RUN"},
		"leases of two":       {"leases a b", session.ExitUsage, "takes the name of one Run, not 2"},
		"open and closed":     {"leases --open --closed", session.ExitUsage, "--closed and --open cannot be combined"},
		"until without names": {"watch --until Running", session.ExitUsage, "--until needs the names of Runs"},
		"names in all":        {"watch -A x", session.ExitUsage, "leave out -A or the names"},
		"plan of two":         {"plan a b", session.ExitUsage, "takes the name of one Run, not 2"},
		"plan in all":         {"plan -A x", session.ExitUsage, "leave out -A or the name"},
		"format of plan": {"plan -o csv", session.ExitUsage,
			`--output "csv" is not a format of this command; choose from wide`},
		"selector":    {"list -l a=b=c", session.ExitUsage, "--selector"},
		"no cluster":  {"list", session.ExitError, "no cluster is configured: KUBECONFIG names /"},
		"unreachable": {"list -s https://127.0.0.1:1", session.ExitError, "cannot reach the API server"},
	} {
		t.Run(name, func(t *testing.T) {
			streams, _, out, errOut := genericiooptions.NewTestIOStreams()
			code := Execute(t.Context(), NewCommand(streams), strings.Fields(c.args), errOut)
			if code != c.code || !strings.Contains(errOut.String(), c.want) || out.Len() > 0 {
				t.Errorf("code %d, output %q, error %q; want code %d, no output, error %q", code, out, errOut, c.code, c.want)
			}
			if strings.Count(errOut.String(), "\n") != 1 {
				t.Errorf("want one line of error, got %q", errOut)
			}
		})
	}
}

// What ends a command with somebody else's words does not rule the terminal.
func TestErrorsRuleNoTerminal(t *testing.T) {
	var errOut strings.Builder
	root := &cobra.Command{SilenceErrors: true, SilenceUsage: true, RunE: func(*cobra.Command, []string) error {
		return session.Fail(session.ExitError, "rank 0 exited with 1: \033[2Jall is well\rnot")
	}}
	if code := Execute(t.Context(), root, []string{}, &errOut); code != session.ExitError {
		t.Error(code)
	}
	if diff := cmp.Diff("Error: rank 0 exited with 1: ^[[2Jall is well\\rnot\n", errOut.String()); diff != "" {
		t.Error(diff)
	}
}
