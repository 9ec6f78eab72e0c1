package suspend

import (
	"strings"
	"testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// TestSuspend asks as a user does, and looks at the Run afterwards: what is refused changes nothing.
func TestSuspend(t *testing.T) {
	for name, c := range map[string]struct {
		verb, args string
		edit       func(*rqv1.Run)
		code       int
		suspended  string
		told       string
	}{
		"suspend": {verb: "suspend", args: "trainer", suspended: "true", told: "Run trainer is suspended now"},
		"suspend it twice": {verb: "suspend", args: "trainer", edit: suspended, suspended: "true",
			told: "is suspended already"},
		"resume": {verb: "resume", args: "trainer", edit: suspended, suspended: "false",
			told: "is not suspended now"},
		"resume what runs": {verb: "resume", args: "trainer", told: "is not suspended already"},
		"the second is there": {verb: "suspend", args: "none trainer", code: session.ExitError,
			suspended: "true", told: `"none" not found`},
		"one that has ended": {verb: "suspend", args: "trainer", edit: ended, code: session.ExitError,
			told: "is Completed"},
		"nobody":               {verb: "resume", code: session.ExitUsage, told: "name a Run"},
		"in another namespace": {verb: "suspend", args: "trainer -n mm", code: session.ExitError, told: `namespace "mm"`},
	} {
		run := clitest.RunOf("trainer", 16, 8, clitest.Runs(16))
		if c.edit != nil {
			c.edit(&run)
		}
		server := clitest.NewServer(t, &run)
		command := Suspend
		if c.verb == "resume" {
			command = Resume
		}
		said := clitest.Do(t, server, command, strings.Fields(c.args)...)
		if said.Code != c.code || !strings.Contains(said.Out+said.Err, c.told) {
			t.Errorf("%s: code %d, want %d: %s%s", name, said.Code, c.code, said.Out, said.Err)
		}
		if got := server.Get(&run, "spec", "suspend"); got != c.suspended && !(got == "<nil>" && c.suspended == "") {
			t.Errorf("%s: suspend is %q, want %q", name, got, c.suspended)
		}
	}
}

func suspended(run *rqv1.Run) { run.Spec.Suspend = true }

func ended(run *rqv1.Run) { run.Status.Phase = rqv1.RunCompleted }
