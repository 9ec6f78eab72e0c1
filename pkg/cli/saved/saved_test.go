package saved_test

import (
	"strings"
	"testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/saved"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// TestCheckpointed writes what is said on the Run, and nothing of what cannot be true.
func TestCheckpointed(t *testing.T) {
	for name, c := range map[string]struct {
		args   string
		code   int
		at, me string
		told   string
	}{
		"now": {args: "trainer", at: "2030-01-02T13:00:00Z",
			told: "Run trainer saved its work at 13:00:00"},
		"done": {args: "trainer --take-me", at: "2030-01-02T13:00:00Z", me: "true", told: "saved its work"},
		"at a time": {args: "trainer --at 2030-01-02T12:30:00+01:00", at: "2030-01-02T11:30:00Z",
			told: "at 11:30:00"},
		"to come": {args: "trainer --at 2030-01-03T12:00:00Z", code: session.ExitUsage, told: "is in the future"},
		"no time": {args: "trainer --at noon", code: session.ExitUsage,
			told: `must be a time such as 2026-01-31T10:00:00Z, not "noon"`},
		"no Run":     {args: "", code: session.ExitUsage, told: "name a Run"},
		"a stranger": {args: "trianer", code: session.ExitError, told: `Run "trianer" not found in namespace "rai"`},
	} {
		trainer := clitest.RunOf("trainer", 32, 32, clitest.Runs(32))
		run := &trainer
		server := clitest.NewServer(t, run)
		said := clitest.Do(t, server, saved.Command, strings.Fields(c.args)...)
		if said.Code != c.code || !strings.Contains(said.Out+said.Err, c.told) {
			t.Errorf("%s: %+v, want code %d and %q", name, said, c.code, c.told)
		}
		if at := server.Get(run, "metadata", "annotations", rqv1.AnnotationSavedAt); at != c.at {
			t.Errorf("%s: the Run says that it was saved at %q, want %q", name, at, c.at)
		}
		if me := server.Get(run, "metadata", "annotations", rqv1.AnnotationTakeMe); me != c.me {
			t.Errorf("%s: take-me is %q, want %q", name, me, c.me)
		}
	}
}
