package plan

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
	"github.com/davidlangworthy/jobtree/pkg/published"
)

// asking is an API server for who may read no namespace but rai. It does something when a Run that only asks is looked
// at for the first time.
func asking(t *testing.T, looked func(server *clitest.Server, run *rqv1.Run)) *clitest.Server {
	server := clitest.NewServer(t)
	server.Readable = []string{"rai"}
	done := false
	server.Before = func(request string) error {
		name, found := strings.CutPrefix(request, "get runs/"+rqv1.WhatIfPrefix)
		if !found || done {
			return nil
		}
		done = true
		run := draft("", 16)
		run.Namespace, run.Name, run.UID = "rai", rqv1.WhatIfPrefix+name, "" // it keeps the UID that it has
		for _, path := range [][]string{{"spec", "suspend"}, {"metadata", "labels", rqv1.LabelWhatIf}} {
			if got := server.Get(run, path...); got != "true" {
				t.Errorf("%v of the Run that asks is %q", path, got)
			}
		}
		if ttl := server.Get(run, "spec", "ttlSecondsAfterFinished"); ttl != "120" {
			t.Errorf("it is deleted after %q seconds", ttl)
		}
		looked(server, run)
		return nil
	}
	return server
}

// gone asserts that no Run is left.
func gone(t *testing.T, what string, server *clitest.Server) {
	t.Helper()
	if left := clitest.Do(t, server, everyRun); left.Out != "" {
		t.Errorf("%s: there are Runs left: %s", what, left.Out)
	}
}

func everyRun(s *session.Session) *cobra.Command {
	return &cobra.Command{Use: "every", RunE: s.RunE(func(ctx context.Context, _ []string) error {
		c, _, _, err := s.Connect()
		if err != nil {
			return err
		}
		var runs rqv1.RunList
		err = s.List(ctx, c, "rai", &runs)
		for i := range runs.Items {
			_, _ = s.Out.Write([]byte(runs.Items[i].Name + " "))
		}
		return err
	})}
}

// TestTheSchedulerIsAsked says what would happen for who may not read what the scheduler decides from, and leaves
// nothing behind.
func TestTheSchedulerIsAsked(t *testing.T) {
	date := metav1.NewTime(clitest.Noon.Add(75 * time.Minute))
	for name, c := range map[string]struct {
		forecast rqv1.RunForecast
		told     []string
	}{
		"it would start": {rqv1.RunForecast{GPUs: 16, Remarks: []string{"spares of 1 are rounded up to 8"}},
			[]string{"rai/mine", "now, with 16 GPUs\n", "spares of 1 are rounded up to 8", "the scheduler's answer"}},
		"it would wait": {rqv1.RunForecast{EarliestStart: &date, Message: "8 GPUs are short",
			Expected: &rqv1.Forecast{DeficitGPUs: 8, Scope: "fabric.domain=A", Confidence: rqv1.ConfidenceConservative},
			Refusal:  &rqv1.RunRefusal{Reason: "InsufficientGPUs"}},
			[]string{"in 15m", "conservative", "8 GPUs in fabric.domain=A", "InsufficientGPUs: 8 GPUs are short"}},
		"it would wait without a date": {rqv1.RunForecast{Message: "it never fits",
			Refusal: &rqv1.RunRefusal{Reason: "NeverFits"}}, []string{"STARTS BY", "no date", "NeverFits: it never fits"}},
	} {
		server := asking(t, func(server *clitest.Server, run *rqv1.Run) {
			run.Status.Forecast = &c.forecast
			server.Set(run)
		})
		said := clitest.Do(t, server, Command, "-f", file(t, draft("mine", 16)))
		for _, want := range c.told {
			if said.Code != 0 || said.Err != "" || !strings.Contains(said.Out, want) {
				t.Errorf("%s: lacks %q: %+v", name, want, said)
			}
		}
		gone(t, name, server)
	}
}

// TestWhoAsksTheSchedulerAndIsInterrupted leaves nothing behind either.
func TestWhoAsksTheSchedulerAndIsInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	server := asking(t, func(*clitest.Server, *rqv1.Run) { interrupt() })
	said := clitest.Do(t, server, func(s *session.Session) *cobra.Command {
		cmd := Command(s)
		cmd.SetContext(ctx)
		return cmd
	}, "-f", file(t, draft("mine", 16)))
	if said.Code != 130 || said.Out != "" {
		t.Errorf("%+v", said)
	}
	gone(t, "interrupted", server)
}

// TestTheSchedulerIsAskedAboutOthersPods asks by a Run whose template says what the API server takes of those pods.
func TestTheSchedulerIsAskedAboutOthersPods(t *testing.T) {
	server := asking(t, func(server *clitest.Server, run *rqv1.Run) {
		if got := server.Get(run, "spec", "template", "spec", "restartPolicy"); got != "Never" {
			t.Errorf("its pods restart %s", got)
		}
		run.Status.Forecast = &rqv1.RunForecast{GPUs: 16}
		server.Set(run)
	})
	public := clitest.Published(t, "")
	public.Data[published.KeyFleet] = `{"levels":[],"domains":[{"gpuType":"H100-80GB"},{"gpuType":"H100-80GB"}]}`
	server.Set(public)
	said := clitest.Do(t, server, Command, "-f", written(t, jobSet))
	if said.Code != 0 || !strings.Contains(said.Out, "rai/JobSet/llm") ||
		!strings.Contains(said.Out, "now, with 16 GPUs") {
		t.Errorf("%+v", said)
	}
	gone(t, "a JobSet", server)
}

// TestWhoMayNotAskTheScheduler is told why.
func TestWhoMayNotAskTheScheduler(t *testing.T) {
	server := asking(t, nil)
	readable := server.Before
	server.Before = func(request string) error {
		if request == "create runs" {
			return clitest.Forbidden("create", "runs")
		}
		return readable(request)
	}
	said := clitest.Do(t, server, Command, "-f", file(t, draft("mine", 16)))
	if said.Code != session.ExitError || !strings.Contains(said.Err, `refused Run rai/mine: `) {
		t.Errorf("%+v", said)
	}
}
