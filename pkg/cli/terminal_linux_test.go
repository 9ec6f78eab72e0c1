package cli

import (
	"strings"
	"testing"
	"unicode/utf8"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/davidlangworthy/jobtree/pkg/cli/cancel"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/leases"
	"github.com/davidlangworthy/jobtree/pkg/cli/list"
)

// longWaits is a Run that says much.
func longWaits() []client.Object {
	run := clitest.RunOf("waits", 64, 0, clitest.Waits("InsufficientGPUs",
		"64 H100-80GB GPUs are needed, and this is a long story – "+strings.Repeat("é", 200)))
	lease := clitest.LeaseOf(&run, "w-0", 0, "a1")
	return []client.Object{&run, &lease}
}

// TestTablesOnATerminal: a terminal shows as much of a line as it has columns, a pipe all of it.
func TestTablesOnATerminal(t *testing.T) {
	for _, columns := range []int{80, 120} {
		server := clitest.NewServer(t, longWaits()...)
		said := clitest.OnTerminal(t, server, list.Command, columns, "")
		lines := strings.Split(strings.TrimSpace(said.Out), "\n")
		if said.Code != 0 || len(lines) != 2 || utf8.RuneCountInString(lines[1]) != columns ||
			!strings.HasSuffix(lines[1], "…") {
			t.Errorf("of %d columns: %q", columns, said.Out)
		}
		if said = clitest.OnTerminal(t, server, list.Command, columns, "", "-o", "wide"); strings.Contains(said.Out, "…") {
			t.Errorf("the wide format is cut: %q", said.Out)
		}
		if said = clitest.Do(t, server, list.Command); strings.Contains(said.Out, "…") {
			t.Errorf("a pipe gets less: %q", said.Out)
		}
	}
	said := clitest.OnTerminal(t, clitest.NewServer(t, longWaits()...), leases.Command, 80, "")
	for line := range strings.Lines(said.Out) {
		if utf8.RuneCountInString(line) > 81 || strings.Contains(line, "…") {
			t.Errorf("GPU leases do not fit 80 columns: %q", said.Out)
		}
	}
}

// TestATerminalIsAsked: whoever types has the last word.
func TestATerminalIsAsked(t *testing.T) {
	for typed, code := range map[string]int{"y\n": 0, "\n": 1} {
		a, b := clitest.RunOf("a", 8, 0, clitest.Runs(8)), clitest.RunOf("b", 8, 0, clitest.Runs(8))
		server := clitest.NewServer(t, &a, &b)
		said := clitest.OnTerminal(t, server, cancel.Command, 80, typed, "a", "b")
		there := server.Get(&a, "metadata", "name") != ""
		if said.Code != code || !strings.Contains(said.Out, "Cancel 2 Runs in namespace rai? [y/N]") || there != (code == 1) {
			t.Errorf("%q: %+v, and it is there: %v", typed, said, there)
		}
	}
}
