package watch

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// scene is an API server at which something happens each time that a watch of Runs has begun.
type scene struct {
	*clitest.Server
	once  sync.Mutex
	steps []func()
}

// happens has steps come to pass, one for each watch of Runs, just before it begins.
func happens(server *clitest.Server, steps ...func()) *scene {
	s := &scene{Server: server, steps: steps}
	server.Before = func(request string) error {
		if request != "watch runs" {
			return nil
		}
		s.once.Lock()
		defer s.once.Unlock()
		if len(s.steps) > 0 {
			step := s.steps[0]
			s.steps = s.steps[1:]
			step()
		}
		return nil
	}
	return s
}

func phased(phase rqv1.RunPhase, message string) *rqv1.Run {
	status := clitest.Runs(16)
	status.Phase, status.Message = phase, message
	run := clitest.RunOf("trainer", 16, 0, status)
	return &run
}

// stories are the messages of lines that a watch has printed, in order.
func stories(out string) []string {
	var all []string
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		all = append(all, strings.Join(fields[2:], " "))
	}
	return all
}

// TestWatchEnds follows a Run to its end, and says how that was.
func TestWatchEnds(t *testing.T) {
	for name, c := range map[string]struct {
		args  string
		after *rqv1.Run // nil when it is deleted
		code  int
		last  string
		told  string
	}{
		"it completes": {"trainer", phased(rqv1.RunCompleted, "all done"), 0, "Completed 16/16 GPUs all done", ""},
		"it fails": {"trainer", phased(rqv1.RunFailed, "exit 1"), session.ExitNotReached, "Failed 16/16 GPUs exit 1",
			"Run trainer is Failed: exit 1"},
		"it is deleted": {"trainer", nil, session.ExitNotReached, "deleted", "Run trainer was deleted"},
		"it starts": {"trainer --until running", phased(rqv1.RunRunning, "bound"), 0,
			"Running 16/16 GPUs [leases: 0 active] bound", ""},
		"it is over before it was seen to run": {"trainer --until Running", phased(rqv1.RunCompleted, "quick"), 0,
			"Completed 16/16 GPUs quick", ""},
		"it fails before it runs": {"trainer --until Running", phased(rqv1.RunFailed, "no image"),
			session.ExitNotReached, "Failed 16/16 GPUs no image", "Run trainer is Failed: no image"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			waits := phased(rqv1.RunPending, "waiting")
			server := clitest.NewServer(t, waits)
			s := happens(server, func() {
				if c.after == nil {
					server.Delete(waits)
				} else {
					server.Set(c.after)
				}
			})
			said := clitest.Do(t, s.Server, Command, strings.Fields(c.args)...)
			told := stories(said.Out)
			if said.Code != c.code || said.Err != c.told || len(told) != 2 || told[1] != c.last {
				t.Errorf("%+v", said)
			}
		})
	}
}

// TestWatchGoesOn through watches that end, versions that are too old and an API server that is away: nothing that has
// happened meanwhile is lost, and nothing is told twice.
func TestWatchGoesOn(t *testing.T) {
	middle, end := phased(rqv1.RunRunning, "bound"), phased(rqv1.RunCompleted, "all done")
	want := []string{"Pending 16/16 GPUs waiting", "Running 16/16 GPUs [leases: 0 active] bound",
		"Completed 16/16 GPUs all done"}
	for name, c := range map[string]struct {
		meanwhile func(s *clitest.Server)
		err       string
	}{
		"a watch that ends":         {func(s *clitest.Server) { go later(func() { s.Set(middle); s.BreakWatches() }) }, ""},
		"a version that is too old": {func(s *clitest.Server) { s.Set(middle); s.Forget(); s.BreakWatches() }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := clitest.NewServer(t, phased(rqv1.RunPending, "waiting"))
			s := happens(server, func() { c.meanwhile(server) }, func() {}, func() {})
			first := server.Before
			relists := 0
			server.Before = func(request string) error {
				if err := first(request); err != nil {
					return err
				}
				if request == "watch runs" {
					relists++
					if relists == 2 {
						go later(func() { server.Set(end) })
					}
				}
				return nil
			}
			said := clitest.Do(t, s.Server, Command, "trainer", "--timeout", "20s")
			if diff := cmp.Diff(want, stories(said.Out)); said.Code != 0 || said.Err != c.err || diff != "" {
				t.Errorf("code %d, %q (-want +got):\n%s", said.Code, said.Err, diff)
			}
		})
	}
	t.Run("an API server that is away", func(t *testing.T) {
		t.Parallel()
		server := clitest.NewServer(t, phased(rqv1.RunPending, "waiting"))
		watches := 0
		server.Before = func(request string) error {
			if request != "watch runs" {
				return nil
			}
			if watches++; watches == 1 {
				return apierrors.NewServiceUnavailable("shutting down")
			}
			server.Set(end)
			return nil
		}
		said := clitest.Do(t, server, Command, "trainer", "--timeout", "20s")
		wantErr := "Lost the API server, trying again: shutting down\nThe API server is back.\n"
		if diff := cmp.Diff(wantErr, said.Err); said.Code != 0 || diff != "" {
			t.Errorf("code %d (-want +got):\n%s", said.Code, diff)
		}
	})
}

// later has something happen once the changes before it have been told.
func later(happens func()) {
	<-time.After(settle + 200*time.Millisecond)
	happens()
}

// TestAWatchThatCannotBegin says why at once, and does not wait for what is never going to be.
func TestAWatchThatCannotBegin(t *testing.T) {
	refuse := func(request string, err error) func(string) error {
		return func(r string) error {
			if r == request {
				return err
			}
			return nil
		}
	}
	for name, c := range map[string]struct {
		args   string
		before func(string) error
		code   int
		told   []string
	}{
		"no such Run": {"trianer", nil, session.ExitError, []string{`Run "trianer" not found in namespace "rai"`,
			"kubectl runs list -A"}},
		"one of two": {"trainer other --until Running", nil, session.ExitError, []string{`Run "other" not found`}},
		"not to be read": {"trainer", refuse("get runs/trainer", clitest.Forbidden("get", "runs")), session.ExitError,
			[]string{`cannot get resource "runs"`, "ask an administrator"}},
		"not to be list": {"", refuse("list runs", clitest.Forbidden("list", "runs")), session.ExitError,
			[]string{`cannot list resource "runs"`, "ask an administrator"}},
		"no time at all": {"trainer --timeout -1s", nil, session.ExitUsage, []string{"--timeout must not be negative"}},
		"no such phase":  {"trainer --until Started", nil, session.ExitUsage, []string{`"Started" is not a phase of a Run`}},
		"no such format": {"trainer -o table", nil, session.ExitUsage, []string{`"table" is not a format`}},
		"too short a time": {"trainer --timeout 50ms", nil, session.ExitTimeout,
			[]string{"timed out after 50ms; Run trainer is Pending: waiting"}},
	} {
		server := clitest.NewServer(t, phased(rqv1.RunPending, "waiting"))
		server.Before = c.before
		said := clitest.Do(t, server, Command, strings.Fields(c.args)...)
		for _, want := range c.told {
			if said.Code != c.code || !strings.Contains(said.Err, want) {
				t.Errorf("%s: %+v lacks %q", name, said, want)
			}
		}
	}
}

// TestWatchWithoutLeases follows Runs although GPU leases may not be read, and says that it does; nothing is counted
// then.
func TestWatchWithoutLeases(t *testing.T) {
	server := clitest.NewServer(t, phased(rqv1.RunRunning, "bound"))
	server.Before = func(request string) error {
		if request == "list leases" {
			return clitest.Forbidden("list", "leases")
		}
		return nil
	}
	said := clitest.Do(t, server, Command, "trainer", "--until", "Running")
	if diff := cmp.Diff([]string{"Running 16/16 GPUs bound"}, stories(said.Out)); said.Code != 0 || diff != "" {
		t.Errorf("%+v\n%s", said, diff)
	}
	if !strings.Contains(said.Err, `GPU leases are not followed: `) || !strings.Contains(said.Err, `"leases"`) {
		t.Errorf("%q", said.Err)
	}
}

// TestWatchForPrograms prints an object a line, with what was seen of its GPU leases.
func TestWatchForPrograms(t *testing.T) {
	run := phased(rqv1.RunPending, "waiting")
	server := clitest.NewServer(t, run)
	lease := clitest.As(clitest.LeaseOf(run, "t-0", 0, "a1"), rqv1.RoleActive, 0)
	lease.Labels[rqv1.LabelRun] = "trainer"
	happens(server, func() { server.Set(&lease); server.Set(phased(rqv1.RunCompleted, "all done")) })
	said := clitest.Do(t, server, Command, "trainer", "-o", "json")
	var phases []string
	opened := 0
	lines := bufio.NewScanner(strings.NewReader(said.Out))
	for lines.Scan() {
		var seen struct {
			rqv1.Run
			Watch struct {
				Leases  map[string]int
				Changes []map[string]any
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &seen); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		phases = append(phases, string(seen.Status.Phase))
		opened += len(seen.Watch.Changes)
	}
	if diff := cmp.Diff("Pending Completed", strings.Join(phases, " ")); said.Code != 0 || diff != "" || opened != 1 {
		t.Errorf("%d changes (-want +got):\n%s%+v", opened, diff, said)
	}
}

// TestAWatchIsInterrupted by who runs it: what has been seen is told, and nothing is blamed.
func TestAWatchIsInterrupted(t *testing.T) {
	w := &runWatch{Session: &session.Session{}, report: &reporter{out: new(strings.Builder), now: time.Now}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.loop(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	var failed *session.Failure
	if err := w.InWords(context.Canceled); !errors.As(err, &failed) || failed.Code != 130 || failed.Message != "" {
		t.Errorf("in words: %v", err)
	}
}

// TestWatchOfAllNamespaces follows the Runs of the namespaces that one may read, as "list -A" lists them.
func TestWatchOfAllNamespaces(t *testing.T) {
	elsewhere := *phased(rqv1.RunPending, "waiting")
	elsewhere.Namespace = "mm"
	hidden := *phased(rqv1.RunRunning, "secret")
	hidden.Namespace = "aud"
	dated := clitest.ReservationOf(&elsewhere, 8) // everybody may read those: so mm is known
	server := clitest.NewServer(t, phased(rqv1.RunPending, "waiting"), &elsewhere, &hidden, &dated)
	server.Readable = []string{"rai", "mm"}
	said := clitest.Do(t, server, Command, "-A", "--timeout", "1s")
	for _, want := range []string{"rai/trainer", "mm/trainer"} {
		if !strings.Contains(said.Out, want) {
			t.Errorf("%s is not followed: %+v", want, said)
		}
	}
	if strings.Contains(said.Out, "secret") || !strings.Contains(said.Err, "Showing namespaces mm, rai only") {
		t.Errorf("%+v", said)
	}
	server.Readable = []string{}
	if said := clitest.Do(t, server, Command, "-A", "--timeout", "1s"); said.Code != session.ExitError {
		t.Errorf("nothing may be read: %+v", said)
	}
}
