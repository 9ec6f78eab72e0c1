package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// Files are checked where no cluster is configured.
func TestVerifyFiles(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("KUBECONFIG", filepath.Join(dir, "none"))
	pending, _ := clitest.Committed()
	valid := clitest.Text(t, clitest.Revealed(t))
	asJSON, err := json.Marshal(clitest.Revealed(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"valid.yaml": valid, "tampered.yml": clitest.Text(t, clitest.Tampered(t)), "pending.yaml": clitest.Text(t, pending),
		"valid.json": string(asJSON),
		"list.yaml": clitest.Text(t, map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{},
			"items": []any{clitest.Revealed(t)}}),
		"two.yaml":   valid + "---\n" + valid,
		"run.yaml":   "apiVersion: rq.davidlangworthy.io/v1\nkind: Run\nmetadata:\n  name: x\nspec:\n  owner: org:a\n",
		"extra.yaml": strings.Replace(valid, "  state:", "  winner: me\n  state:", 1),
		"empty.yaml": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args     string // DIR stands for the directory
		out, err string // what the output has to contain
		code     int
	}{
		{args: "--verify DIR/valid.yaml", out: "VERDICT    valid\n"},
		{args: "--verify DIR/valid.json", out: "VERDICT    valid\n"},
		{args: "--verify DIR/list.yaml", out: "VERDICT    valid\n"},
		{args: "--verify -", out: "VERDICT    valid\n"},
		{args: "--verify DIR/valid.yaml -o json", out: `"verdict": "valid"`},
		{args: "--verify DIR/valid.yaml -o name", out: "reservation.rq.davidlangworthy.io/big-r0\n"},
		{args: "--verify DIR/tampered.yml", out: "VERDICT    not valid\n",
			err: "Error: the record of Reservation rai/big-r0 is not valid\n", code: session.ExitInvalid},
		{args: "--verify DIR/tampered.yml -o yaml", out: "verdict: invalid", err: "is not valid", code: session.ExitInvalid},
		{args: "--verify DIR/pending.yaml", out: "not revealed yet", code: session.ExitUnrevealed},
		{args: "--verify DIR/two.yaml", err: "two.yaml holds 2 objects; --verify checks one Reservation",
			code: session.ExitError},
		{args: "--verify DIR/empty.yaml", err: "empty.yaml holds 0 objects", code: session.ExitError},
		{args: "--verify DIR/run.yaml", err: "run.yaml holds a Run; --verify checks a Reservation", code: session.ExitError},
		{args: "--verify DIR/extra.yaml", err: `extra.yaml, document 1: unknown field "status.winner"`,
			code: session.ExitError},
		{args: "--verify DIR/absent.yaml", err: "cannot read", code: session.ExitError},
		{args: "--verify DIR/valid.yaml trainer", err: `leave out the Run "trainer"`, code: session.ExitUsage},
		{args: "--verify=", err: "name a Reservation or a file to check", code: session.ExitUsage},
		{args: "", err: "name a Run", code: session.ExitUsage},
	} {
		streams, in, out, _ := genericiooptions.NewTestIOStreams()
		in.WriteString(valid)
		var problems strings.Builder
		args := append([]string{"explain"}, strings.Fields(strings.ReplaceAll(c.args, "DIR", dir))...)
		code := Execute(t.Context(), NewCommand(streams), args, &problems)
		if code != c.code || !strings.Contains(out.String(), c.out) || !strings.Contains(problems.String(), c.err) ||
			c.err == "" && problems.Len() > 0 {
			t.Errorf("%s: code %d, want %d\noutput %q\n  want %q\nerror  %q\n  want %q", c.args, code, c.code, out, c.out,
				problems.String(), c.err)
		}
	}
}
