package resize

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// TestResize asks for widths as a user does, and looks at what the Run desires afterwards: what is refused changes
// nothing.
func TestResize(t *testing.T) {
	for name, c := range map[string]struct {
		verb, args string
		edit       func(*rqv1.Run)
		code       int
		desired    string
		told       []string
	}{
		"grow by a step": {verb: "grow", args: "trainer --by 32", desired: "160",
			told: []string{"Run trainer now wants 160 GPUs instead of 128", "kubectl runs watch -n rai trainer"}},
		"grow to all": {verb: "grow", args: "trainer --to=160", desired: "160"},
		"shrink": {verb: "shrink", args: "trainer --by 32", desired: "96",
			told: []string{"now wants 96 GPUs instead of 128"}},
		"shrink one that never said what it desires": {verb: "shrink", args: "trainer --by 32", desired: "96",
			edit: func(r *rqv1.Run) { r.Spec.Malleable.DesiredTotalGPUs = nil },
			told: []string{"now wants 96 GPUs instead of 160"}},
		"to what it desires": {verb: "grow", args: "trainer --to 128", desired: "128",
			told: []string{"already wants 128 GPUs"}},
		"by more than there are numbers": {verb: "grow", args: "trainer --by 2147483647", code: session.ExitError,
			desired: "128",
			told:    []string{"GPUs are too many; the most is malleable.maxTotalGPUs, 160"}},
		"by the least that is too much": {verb: "grow", args: "trainer --by 2147483520", code: session.ExitError,
			desired: "128",
			told:    []string{"2147483648 GPUs are too many"}},
		"shrink by more than there is": {verb: "shrink", args: "trainer --by 2147483647", code: session.ExitError,
			desired: "128",
			told:    []string{"GPUs are too few; the least is malleable.minTotalGPUs, 96"}},
		"by nothing": {verb: "grow", args: "trainer --by 0", code: session.ExitUsage, desired: "128",
			told: []string{"positive number"}},
		"by less": {verb: "grow", args: "trainer --by=-32", code: session.ExitUsage, desired: "128",
			told: []string{"positive number"}},
		"by and to": {verb: "grow", args: "trainer --by 32 --to 160", code: session.ExitUsage, desired: "128",
			told: []string{"[by to]"}},
		"neither by nor to": {verb: "grow", args: "trainer", code: session.ExitUsage, desired: "128",
			told: []string{"[by to]"}},
		"no number": {verb: "grow", args: "trainer --by half", code: session.ExitUsage, desired: "128",
			told: []string{"half"}},
		"no Run": {verb: "grow", args: "--by 32", code: session.ExitUsage, desired: "128",
			told: []string{"name a Run"}},
		"another Run": {verb: "grow", args: "trianer --by 32", code: session.ExitError, desired: "128",
			told: []string{`Run "trianer" not found in namespace "rai"`, "kubectl runs list -A"}},
		"another namespace": {verb: "grow", args: "trainer --by 32 -n mm", code: session.ExitError, desired: "128",
			told: []string{`not found in namespace "mm"`}},
		"one that has ended": {verb: "shrink", args: "trainer --by 32", code: session.ExitError, desired: "128",
			edit: func(r *rqv1.Run) { r.Status.Phase = rqv1.RunCompleted }, told: []string{"is Completed and holds no GPUs"}},
	} {
		run := elasticRun(c.edit)
		server := clitest.NewServer(t, run)
		command := Grow
		if c.verb == "shrink" {
			command = Shrink
		}
		said := clitest.Do(t, server, command, strings.Fields(c.args)...)
		if said.Code != c.code || c.code != 0 && said.Out != "" {
			t.Errorf("%s: code %d, want %d: %s%s", name, said.Code, c.code, said.Out, said.Err)
		}
		for _, want := range c.told {
			if !strings.Contains(said.Out+said.Err, want) {
				t.Errorf("%s: %q lacks %q", name, said.Out+said.Err, want)
			}
		}
		if got := server.Get(run, "spec", "malleable", "desiredTotalGPUs"); got != c.desired {
			t.Errorf("%s: the Run desires %s GPUs, want %s", name, got, c.desired)
		}
		if got := server.Get(run, "spec", "malleable", "stepGPUs"); got != "32" {
			t.Errorf("%s: its step is %s", name, got)
		}
	}
}

// TestARunThatIsGoneMeanwhile is not there any more when its width is written: that is told as if it had never been
// there.
func TestARunThatIsGoneMeanwhile(t *testing.T) {
	run := elasticRun(nil)
	server := clitest.NewServer(t, run)
	server.Before = func(request string) error {
		if strings.HasPrefix(request, "patch") {
			server.Delete(run)
		}
		return nil
	}
	said := clitest.Do(t, server, Grow, "trainer", "--by", "32")
	if said.Code != session.ExitError || !strings.Contains(said.Err, `Run "trainer" not found in namespace "rai"`) ||
		!strings.Contains(said.Err, "kubectl runs list -A") {
		t.Errorf("%+v", said)
	}
}

// TestWithoutTheRight names the right that is missing, and says what the API server holds against a width.
func TestWithoutTheRight(t *testing.T) {
	kind := schema.GroupKind{Group: rqv1.GroupName, Kind: "Run"}
	for name, c := range map[string]struct {
		at   string
		err  error
		told []string
	}{
		"to read": {"get runs/trainer", clitest.Forbidden("get", "runs"),
			[]string{`cannot get resource "runs"`, "ask an administrator"}},
		"to write": {"patch runs/trainer", clitest.Forbidden("patch", "runs"),
			[]string{`cannot patch resource "runs"`, "ask an administrator"}},
		"a policy": {"patch runs/trainer", apierrors.NewInvalid(kind, "trainer", nil),
			[]string{`"trainer" is invalid`}},
		"somebody who is not known": {"get runs/trainer", apierrors.NewUnauthorized("who?"),
			[]string{"does not accept these credentials", "--kubeconfig"}},
	} {
		server := clitest.NewServer(t, elasticRun(nil))
		server.Before = func(request string) error {
			if request == c.at {
				return c.err
			}
			return nil
		}
		said := clitest.Do(t, server, Grow, "trainer", "--by", "32")
		for _, want := range c.told {
			if said.Code != session.ExitError || said.Out != "" || !strings.Contains(said.Err, want) {
				t.Errorf("%s: %+v lacks %q", name, said, want)
			}
		}
	}
}
