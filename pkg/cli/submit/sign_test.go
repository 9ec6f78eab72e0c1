package submit

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
)

// Whoever has a name that is too long for a Run submits all the same.
func TestWhoSubmits(t *testing.T) {
	longest := strings.Repeat("é", longestSubmitter)
	for name, want := range map[string]string{"ann": "ann", longest: longest, longest + "x": ""} {
		run := clitest.RunOf("a", 8, 0, clitest.Runs(8))
		server := clitest.NewServer(t)
		server.Asker = name
		said := clitest.Ask(t, server, Command, text(t, "a", ""), "--wait=0s", "-")
		if diff := cmp.Diff(want, server.Get(&run, "spec", "submitter")); said.Code != 0 || diff != "" {
			t.Errorf("%d letters: %+v %s", len(name), said, diff)
		}
	}
}
