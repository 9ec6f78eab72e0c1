package cli

import (
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// helps is what a command line prints that asks for help.
func helps(t *testing.T, line string) string {
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	if code := Execute(t.Context(), NewCommand(streams), strings.Fields(line), errOut); code != 0 {
		t.Errorf("%s: code %d, %s", line, code, errOut)
	}
	return out.String()
}

// TestHelp has how a command is used come first and the flags that all commands take not at all.
func TestHelp(t *testing.T) {
	for line, want := range map[string][]string{
		"plan --help":        {"Usage:\n  kubectl runs plan", "Examples:", "Flags:", "-f, --file", "With -o json"},
		"--help":             {"Usage:\n  kubectl runs COMMAND", "Commands:", "  submit ", "Exit codes:"},
		"help budgets usage": {"Usage:\n  kubectl runs budgets usage", "Examples:", "Flags:", "--tree"},
		"options":            {"--as-group", "--context", "--kubeconfig"},
	} {
		text := helps(t, line)
		rest := text
		for _, word := range want {
			_, after, found := strings.Cut(rest, word)
			if !found {
				t.Errorf("%s: %q does not come after what is before it:\n%s", line, word, text)
				break
			}
			rest = after
		}
		if line != "options" && strings.Contains(text, "--as-group") {
			t.Errorf("%s lists the flags of all commands:\n%s", line, text)
		}
	}
}
