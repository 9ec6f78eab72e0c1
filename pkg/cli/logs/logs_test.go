package logs

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

// quick is the command, with little patience between two looks.
func quick(s *session.Session) *cobra.Command {
	return (&logs{Session: s, lookEvery: time.Millisecond}).command()
}

// prints is a Run of some ranks, each of which prints two lines, and the query that was asked of each.
func prints(t *testing.T, status rqv1.RunStatus, ranks ...int) (*clitest.Server, map[string]string) {
	run := clitest.RunOf("train", 8*int32(len(ranks)), 0, status)
	objects := []client.Object{&run}
	for _, i := range ranks {
		objects = append(objects, clitest.PodOf(&run, i, fmt.Sprint("n", i)))
	}
	spare := clitest.PodOf(&run, 0, "s0")
	spare.Name, spare.Labels[rqv1.LabelRole] = "train-s0", string(rqv1.RoleSpare)
	namesake := clitest.PodOf(&run, 7, "n7")
	namesake.Labels[rqv1.LabelRunUID] = "of the one before"
	server := clitest.NewServer(t, append(objects, spare, namesake)...)
	asked, mu := map[string]string{}, &sync.Mutex{}
	server.Stream = func(out http.ResponseWriter, r *http.Request, pod, stream string) {
		mu.Lock()
		defer mu.Unlock()
		asked[pod] = stream + "?" + r.URL.RawQuery
		fmt.Fprintf(out, "%s begins\n%s ends", pod, pod)
	}
	return server, asked
}

func TestWhatIsPrinted(t *testing.T) {
	failed := rqv1.RunStatus{Phase: rqv1.RunFailed,
		Deaths: []rqv1.RunDeath{{Index: 1, Pod: "train-1-uid", Node: "n1", Cause: rqv1.CauseProgram, Sign: "OOMKilled",
			Container: "main", ExitCode: 137, At: clitest.After(0)}},
		Conditions: []metav1.Condition{{Type: rqv1.ConditionFinished, Status: metav1.ConditionTrue, Reason: "Failed"}}}
	again := clitest.Runs(16)
	again.Deaths = []rqv1.RunDeath{{Index: 0, Pod: "another", Node: "n3", Sign: "Error", ExitCode: 1, Container: "main"}}
	for name, c := range map[string]struct {
		status   rqv1.RunStatus
		args     string
		out, err string
		asked    map[string]string
		code     int
	}{
		"the leader": {status: clitest.Runs(16), out: "train-0 begins\ntrain-0 ends",
			err:   "Rank 0 of Run train (pod train-0 on node n0), one of 2; --rank N or --all shows others\n",
			asked: map[string]string{"train-0": "log?container=main"}},
		"the guilty one": {status: failed, out: "train-1 begins\ntrain-1 ends",
			err: "Rank 1 of Run train (pod train-1 on node n1), which failed first: OOMKilled (container main, exit code " +
				"137)\n",
			asked: map[string]string{"train-1": "log?container=main"}},
		"a rank": {status: failed, args: "--rank 0", out: "train-0 begins\ntrain-0 ends",
			err:   "Rank 0 of Run train (pod train-0 on node n0)\n",
			asked: map[string]string{"train-0": "log?container=main"}},
		"all of them": {status: clitest.Runs(16), args: "--all --tail 2",
			out: "0: train-0 begins\n0: train-0 ends\n1: train-1 begins\n1: train-1 ends\n",
			asked: map[string]string{"train-0": "log?container=main&tailLines=2",
				"train-1": "log?container=main&tailLines=2"}},
		"options": {status: clitest.Runs(16), args: "--rank 1 -c side -p --timestamps --since 90s",
			out:   "train-1 begins\ntrain-1 ends",
			asked: map[string]string{"train-1": "log?container=side&previous=true&sinceSeconds=90&timestamps=true"}},
		"one that was started again": {status: again, out: "train-0 begins\ntrain-0 ends",
			err:   "(Error (container main, exit code 1)); its earlier logs are gone",
			asked: map[string]string{"train-0": "log?container=main"}},
		"a rank that is not there": {status: clitest.Runs(16), args: "--rank 0,5", code: session.ExitError,
			out: "0: train-0 begins\n0: train-0 ends\n", err: "Run train has no rank 5: it has ranks 0 to 1",
			asked: map[string]string{"train-0": "log?container=main"}},
		"no such container": {status: clitest.Runs(16), args: "-c none", code: session.ExitUsage,
			err: `pod train-0 has no container "none"; choose from main, side`, asked: map[string]string{}},
		"a wrong rank":      {args: "--rank x", code: session.ExitUsage, err: "--rank takes", asked: map[string]string{}},
		"what has ended":    {args: "-f -p", code: session.ExitUsage, err: "leave out -f", asked: map[string]string{}},
		"no such Run":       {args: "-n mm", code: session.ExitError, err: "not found", asked: map[string]string{}},
		"a negative number": {args: "--tail -2", code: session.ExitUsage, err: "negative", asked: map[string]string{}},
	} {
		server, asked := prints(t, c.status, 0, 1)
		said := clitest.Do(t, server, quick, append([]string{"train"}, strings.Fields(c.args)...)...)
		if said.Out != c.out || !strings.Contains(said.Err, c.err) || said.Code != c.code {
			t.Errorf("%s: %+v, want %q, %q, code %d", name, said, c.out, c.err, c.code)
		}
		if diff := cmp.Diff(c.asked, asked); diff != "" {
			t.Errorf("%s asks for something else (-want +got):\n%s", name, diff)
		}
	}
}

// Followed ranks print at the same time, and whole lines.
func TestFollowed(t *testing.T) {
	server, asked := prints(t, clitest.Runs(16), 0, 1, 10)
	said := clitest.Do(t, server, quick, "train", "--all", "-f")
	lines := strings.Split(strings.TrimSpace(said.Out), "\n")
	if said.Code != 0 || len(lines) != 6 || asked["train-10"] != "log?container=main&follow=true" {
		t.Errorf("%+v, %v", said, asked)
	}
	for _, line := range []string{" 0: train-0 begins", " 1: train-1 ends", "10: train-10 ends"} {
		if !strings.Contains(said.Out, line+"\n") {
			t.Errorf("%q is not in\n%s", line, said.Out)
		}
	}
}

// Whoever follows a Run that has not started waits for it; whoever does not is told what it waits for.
func TestARunThatHasNotStarted(t *testing.T) {
	server, _ := prints(t, clitest.Waits("InsufficientGPUs", "short by 8 GPUs"))
	said := clitest.Do(t, server, quick, "train")
	if said.Code != session.ExitError ||
		!strings.Contains(said.Err, "Run train has no pods: it is Pending: short by 8 GPUs") {
		t.Errorf("%+v", said)
	}
	run := clitest.RunOf("train", 8, 0, clitest.Runs(8))
	pod, looks := clitest.PodOf(&run, 0, "n0"), 0
	starting := pod.DeepCopy()
	starting.Status.Phase, starting.Status.ContainerStatuses = corev1.PodPending, []corev1.ContainerStatus{{Name: "main",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}}
	server.Before = func(request string) error {
		if request == "list pods" {
			looks++
			switch looks {
			case 3:
				server.Set(&run, starting)
			case 5:
				server.Set(pod)
			}
		}
		return nil
	}
	said = clitest.Do(t, server, quick, "train", "-f")
	if said.Code != 0 || said.Out != "train-0 begins\ntrain-0 ends" || looks != 5 ||
		strings.Count(said.Err, "Run train is Pending: short by 8 GPUs; waiting\n") != 1 {
		t.Errorf("after %d looks: %+v", looks, said)
	}
	server.Set(starting)
	said = clitest.Do(t, server, quick, "train")
	if said.Code != session.ExitError || !strings.Contains(said.Err, "rank 0 of Run train has printed nothing yet: "+
		"pod train-0 has not started on node n0 (ContainerCreating)") {
		t.Errorf("%+v", said)
	}
}

// What cannot be read is told with what to do; one rank's problem keeps no other rank back.
func TestALogThatCannotBeRead(t *testing.T) {
	server, _ := prints(t, clitest.Runs(16), 0, 1)
	server.Before = func(request string) error {
		switch request {
		case "get pods/train-0/log":
			return errors.New(`Get "https://n0:10250/containerLogs/x": dial tcp: lookup n0: no such host`)
		case "get pods/train-1/log":
			return clitest.Forbidden("get", "pods/log")
		}
		return nil
	}
	said := clitest.Do(t, server, quick, "train", "--all")
	for _, want := range []string{"the API server cannot reach the kubelet of node n0, which keeps the output of rank 0",
		`cannot get resource "pods/log"`, "ask an administrator for the right"} {
		if said.Code != session.ExitError || !strings.Contains(said.Err, want) {
			t.Errorf("%+v lacks %q", said, want)
		}
	}
}
