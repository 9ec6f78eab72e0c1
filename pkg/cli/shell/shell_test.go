package shell

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// visited is a Run of two ranks behind an API server that plays their containers: a command prints what was asked and
// what came in, and ends with a code.
func visited(t *testing.T, code int) *clitest.Server {
	run := clitest.RunOf("train", 16, 0, clitest.Runs(16))
	server := clitest.NewServer(t, &run, clitest.PodOf(&run, 0, "n0"), clitest.PodOf(&run, 1, "n1"))
	server.Stream = func(out http.ResponseWriter, r *http.Request, pod, stream string) {
		conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{"v5.channel.k8s.io": {Binary: true,
			Channels: []wsstream.ChannelType{wsstream.ReadChannel, wsstream.WriteChannel, wsstream.WriteChannel,
				wsstream.WriteChannel, wsstream.ReadChannel}}})
		_, channels, err := conn.Open(out, r)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		query, came := r.URL.Query(), []byte(nil)
		if query.Get("stdin") == "true" {
			if came, err = io.ReadAll(channels[0]); err != nil {
				t.Error(err)
			}
		}
		fmt.Fprintf(channels[1], "%s %s %s: %s <%s", stream, pod, query.Get("container"),
			strings.Join(query["command"], " "), came)
		fmt.Fprint(channels[2], "a complaint")
		status := `{"metadata":{},"status":"Success"}`
		if code != 0 {
			status = fmt.Sprintf(`{"metadata":{},"status":"Failure","reason":"NonZeroExitCode","message":"it failed","details":`+
				`{"causes":[{"reason":"ExitCode","message":"%d"}]}}`, code)
		}
		fmt.Fprint(channels[3], status)
	}
	return server
}

func TestCommandsBesideARank(t *testing.T) {
	for name, c := range map[string]struct {
		make     func(*session.Session) *cobra.Command
		args     string
		exit     int
		code     int
		out, err string
	}{
		"rank 0": {make: Exec, args: "train -- ls -l /tmp", out: "exec train-0 main: ls -l /tmp <", err: "a complaint"},
		"another rank": {make: Exec, args: "train --rank 1 -c side -- env", out: "exec train-1 side: env <",
			err: "a complaint"},
		"with input":    {make: Exec, args: "train -i -- cat", out: "exec train-0 main: cat <typed", err: "a complaint"},
		"its exit code": {make: Exec, args: "train -- false", exit: 42, code: 42, out: "exec train-0", err: "a complaint"},
		"a shell": {make: Shell, args: "train --rank 1", out: "exec train-1 main: sh -c command -v bash",
			err: "a complaint"},
		"no dashes":    {make: Exec, args: "train ls", code: session.ExitUsage, err: "after two dashes, a command"},
		"no command":   {make: Exec, args: "train --", code: session.ExitUsage, err: "after two dashes, a command"},
		"no Run":       {make: Shell, code: session.ExitUsage, err: "name a Run"},
		"no such Run":  {make: Shell, args: "none", code: session.ExitError, err: `Run "none" not found`},
		"no such rank": {make: Shell, args: "train --rank 7", code: session.ExitError, err: "has no rank 7: it has ranks 0"},
		"two ranks":    {make: Shell, args: "train --rank 0-1", code: session.ExitUsage, err: "the number of one rank"},
		"no terminal":  {make: Exec, args: "train -t -- top", code: session.ExitUsage, err: "is not a terminal"},
		"a wrong name": {make: Shell, args: "train -c x", code: session.ExitUsage, err: "choose from main, side"},
	} {
		said := clitest.Ask(t, visited(t, c.exit), c.make, "typed", strings.Fields(c.args)...)
		if said.Code != c.code || !strings.HasPrefix(said.Out, c.out) || !strings.Contains(said.Err, c.err) {
			t.Errorf("%s: %+v, want code %d, %q, %q", name, said, c.code, c.out, c.err)
		}
	}
}

// A rank that has ended, or has not begun, is no place to go to.
func TestNowhereToGo(t *testing.T) {
	for phase, want := range map[corev1.PodPhase]string{
		corev1.PodFailed:  `has ended: its pod is Failed; see what it printed with "kubectl runs logs -n rai train --rank 0"`,
		corev1.PodPending: "has not started yet: its pod is Pending",
	} {
		run := clitest.RunOf("train", 8, 0, clitest.Runs(8))
		pod := clitest.PodOf(&run, 0, "n0")
		pod.Status.Phase, pod.Status.ContainerStatuses = phase, nil
		said := clitest.Do(t, clitest.NewServer(t, &run, pod), Shell, "train")
		if said.Code != session.ExitError || !strings.Contains(said.Err, want) {
			t.Errorf("%s: %+v, want %q", phase, said, want)
		}
	}
}

// Whoever names no rank is told when it is another than the first that is visited.
func TestTheFirstRankHasNoPod(t *testing.T) {
	server := visited(t, 0)
	run := clitest.RunOf("train", 16, 0, clitest.Runs(16))
	server.Delete(clitest.PodOf(&run, 0, "n0"))
	for args, want := range map[string]string{"train -- env": "Rank 1 of Run train (pod train-1 on node n1)\na complaint",
		"train --rank 1 -- env": "a complaint"} {
		said := clitest.Ask(t, server, Exec, "", strings.Fields(args)...)
		if said.Code != 0 || said.Err != want || !strings.HasPrefix(said.Out, "exec train-1 ") {
			t.Errorf("%s: %+v, want %q", args, said, want)
		}
	}
}
