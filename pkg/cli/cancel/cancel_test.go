package cancel

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// command is how a command is made.
type command = func(*session.Session) *cobra.Command

// fleet is Runs in every state, one that stands for a JobSet, and one of another namespace.
func fleet() []client.Object {
	runs := clitest.RunOf("runs", 16, 0, clitest.Runs(16))
	waits := clitest.RunOf("waits", 16, 0, clitest.Waits("InsufficientGPUs", "short"))
	done := clitest.RunOf("done", 16, 0, rqv1.RunStatus{Phase: rqv1.RunCompleted})
	runs.Labels, done.Labels = map[string]string{"sweep": "lr"}, map[string]string{"sweep": "lr"}
	theirs := clitest.Stands(clitest.RunOf("", 16, 0, clitest.Runs(16)), "jobset.x-k8s.io", "JobSet", "llm")
	elsewhere := clitest.RunOf("runs", 16, 0, clitest.Runs(16))
	elsewhere.Namespace = "mm"
	return []client.Object{&runs, &waits, &done, &theirs, &elsewhere}
}

// left are the Runs that there are, by namespace and name.
func left(server *clitest.Server) (names []string) {
	for _, run := range fleet() {
		if server.Get(run, "metadata", "name") != "" {
			names = append(names, run.GetNamespace()+"/"+strings.SplitN(run.GetName(), "-", 2)[0])
		}
	}
	return names
}

func TestWhatIsCanceled(t *testing.T) {
	for name, c := range map[string]struct {
		args, typed string
		seated      bool
		code        int
		said        []string
		gone        string
	}{
		"one that runs": {args: "runs", gone: "rai/runs",
			said: []string{"Run runs canceled: its 16 GPUs are free when its pods are gone\n"}},
		"one is not asked about":  {args: "waits", seated: true, gone: "rai/waits", said: []string{"Run waits canceled\n"}},
		"two by name in a script": {args: "runs waits", gone: "rai/runs rai/waits"},
		"two on a terminal": {args: "runs waits", seated: true, typed: "y\n", gone: "rai/runs rai/waits",
			said: []string{"Cancel 2 Runs in namespace rai? [y/N]", "16/16"}},
		"no is no": {args: "runs waits", seated: true, typed: "n\n", code: session.ExitError,
			said: []string{"nothing was canceled"}},
		"no answer is no":     {args: "runs waits", seated: true, code: session.ExitError},
		"yes, said before":    {args: "runs waits --yes", seated: true, gone: "rai/runs rai/waits"},
		"all on a terminal":   {args: "--all", seated: true, typed: "yes\n", gone: "rai/runs rai/waits"},
		"all in a script":     {args: "--all", code: session.ExitUsage, said: []string{"2 Runs would be canceled", "--yes"}},
		"all, said before":    {args: "--all -y", gone: "rai/runs rai/waits"},
		"by label":            {args: "-l sweep=lr -y", gone: "rai/runs"},
		"those that ended":    {args: "-l sweep=lr -y --finished", gone: "rai/runs rai/done"},
		"nothing to cancel":   {args: "-l sweep=none -y", said: []string{"No Runs to cancel found in namespace rai."}},
		"an ended one is not": {args: "done", code: session.ExitError, said: []string{"it is Completed", "done --finished"}},
		"unless it is meant":  {args: "done --finished", gone: "rai/done", said: []string{"Run done canceled\n"}},
		"others' pods": {args: "jobset/llm", code: session.ExitError,
			said: []string{"kubectl delete -n rai jobset.jobset.x-k8s.io llm"}},
		"every problem is told": {args: "none done waits nothing", code: session.ExitError, gone: "rai/waits",
			said: []string{`Run "none" not found`, "\nError: Run done has ended", `Run "nothing" not found`}},
		"twice the same":   {args: "runs runs", seated: true, gone: "rai/runs"},
		"nobody":           {code: session.ExitUsage, said: []string{"name Runs", "--all"}},
		"all and a name":   {args: "runs --all", code: session.ExitUsage, said: []string{"name Runs"}},
		"a wrong selector": {args: "-l a=b=c", code: session.ExitUsage, said: []string{"--selector"}},
		"elsewhere":        {args: "runs -n mm", gone: "mm/runs"},
	} {
		server := clitest.NewServer(t, fleet()...)
		before := left(server)
		said := clitest.Do
		if c.seated {
			said = func(t testing.TB, s *clitest.Server, make command, args ...string) clitest.Said {
				return clitest.Ask(t, s, make, c.typed, args...)
			}
		}
		got := said(t, server, Command, strings.Fields(c.args)...)
		for _, want := range c.said {
			if !strings.Contains(got.Out+got.Err, want) {
				t.Errorf("%s: %q is not said: %+v", name, want, got)
			}
		}
		var want []string
		for _, run := range before {
			if !strings.Contains(" "+c.gone+" ", " "+run+" ") {
				want = append(want, run)
			}
		}
		if diff := cmp.Diff(want, left(server)); diff != "" || got.Code != c.code {
			t.Errorf("%s: code %d, want %d (-want +left):\n%s\n%+v", name, got.Code, c.code, diff, got)
		}
	}
}

// A Run that has been given the name meanwhile is not the one that was meant.
func TestANamesakeStays(t *testing.T) {
	server := clitest.NewServer(t, fleet()...)
	namesake := clitest.RunOf("runs", 8, 0, clitest.Runs(8))
	namesake.UID = "another"
	server.Before = func(request string) error {
		if request == "delete runs/runs" {
			server.Before = nil
			server.Set(&namesake)
		}
		return nil
	}
	said := clitest.Do(t, server, Command, "runs")
	if said.Code != 0 || said.Out != "Run runs is gone already\n" ||
		server.Get(&namesake, "metadata", "uid") != "another" {
		t.Errorf("%+v", said)
	}
}
