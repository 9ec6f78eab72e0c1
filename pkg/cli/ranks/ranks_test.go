package ranks

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
)

// death is the end of a rank some seconds after noon.
func death(index int32, seconds int, edits ...func(*rqv1.RunDeath)) rqv1.RunDeath {
	d := rqv1.RunDeath{Index: index, Node: "n1", Cause: rqv1.CauseProgram, Sign: "Error", Container: "main", ExitCode: 1,
		At: clitest.After(time.Duration(seconds) * time.Second)}
	for _, edit := range edits {
		edit(&d)
	}
	return d
}

func first(incident int32) func(*rqv1.RunDeath) {
	return func(d *rqv1.RunDeath) { d.Incident, d.First = incident, true }
}

func byNode(d *rqv1.RunDeath) { d.Cause, d.Sign, d.ExitCode = rqv1.CauseNode, "NodeShutdown", 0 }

// failed is the status of a Run that ended for a reason.
func failed(reason string, deaths ...rqv1.RunDeath) rqv1.RunStatus {
	return rqv1.RunStatus{Phase: rqv1.RunFailed, Deaths: deaths, Conditions: []metav1.Condition{
		{Type: rqv1.ConditionFinished, Status: metav1.ConditionTrue, Reason: reason}}}
}

func TestWhichRankIsMeant(t *testing.T) {
	for name, c := range map[string]struct {
		status rqv1.RunStatus
		pods   []int
		want   int
		why    string
	}{
		"one that runs":       {status: clitest.Runs(16), pods: []int{1, 0}},
		"no pods":             {status: clitest.Runs(16)},
		"the lowest there is": {status: clitest.Runs(16), pods: []int{4, 3}, want: 3},
		"deaths that it outlived": {status: func() rqv1.RunStatus {
			s := clitest.Runs(16)
			s.Deaths = []rqv1.RunDeath{death(2, 1, first(1))}
			return s
		}(), pods: []int{0, 1}},
		"the first by time": {status: failed("Failed", death(0, 5), death(3, 4), death(2, 9)), pods: []int{0}, want: 3,
			why: "which failed first: Error (container main, exit code 1)"},
		"the blamed one of the last incident": {status: failed("RestartLimit", death(1, 1, first(1)), death(0, 8),
			death(3, 9, first(2)), death(2, 5, func(d *rqv1.RunDeath) { d.Incident = 2 })), want: 3,
			why: "which failed first: Error"},
		"no program failed":           {status: failed("Failed", death(3, 1, byNode)), pods: []int{0}},
		"it ended for another reason": {status: failed("DeadlineExceeded", death(3, 1)), pods: []int{0}},
	} {
		run := clitest.RunOf("train", 16, 0, c.status)
		s := &Set{Run: &run, Pods: map[int]*corev1.Pod{}}
		for _, i := range c.pods {
			s.Pods[i] = clitest.PodOf(&run, i, "n1")
		}
		got, why := s.Meant()
		if got != c.want || !strings.HasPrefix(why, c.why) || c.why == "" && why != "" {
			t.Errorf("%s: rank %d, %q; want rank %d, %q", name, got, why, c.want, c.why)
		}
	}
}

// A rank that has no pod is told plainly: whether it never was, is being replaced, or has gone, and with what.
func TestARankWithoutAPod(t *testing.T) {
	running := clitest.Runs(16)
	running.Deaths = []rqv1.RunDeath{death(1, 1),
		death(1, 5, func(d *rqv1.RunDeath) { d.Message = "\x1b[2Jout of memory" })}
	for name, c := range map[string]struct {
		status rqv1.RunStatus
		pods   []int
		rank   int
		want   string
	}{
		"never was":      {clitest.Runs(16), []int{0, 1, 2, 5}, 9, "Run train has no rank 9: it has ranks 0 to 2, 5"},
		"being replaced": {clitest.Runs(16), []int{0, 2}, 1, "has no pod at the moment: it is being replaced; it still has"},
		"died":           {running, []int{0, 2}, 1, "at 2030-01-02T12:00:05Z it ended on node n1: Error (container"},
		"has ended":      {failed("Failed"), []int{1}, 0, "the Run is Failed; it still has rank 1"},
		"all gone":       {rqv1.RunStatus{Phase: rqv1.RunCompleted}, nil, 0, "gone with it: the Run is Completed"},
		"waits": {clitest.Waits("InsufficientGPUs", "short by 8"), nil, 0,
			"Run train has no pods: it is Pending: short by 8"},
	} {
		run := clitest.RunOf("train", 16, 0, c.status)
		s := &Set{Run: &run, Pods: map[int]*corev1.Pod{}}
		for _, i := range c.pods {
			s.Pods[i] = clitest.PodOf(&run, i, "n1")
		}
		_, err := s.Pod(c.rank)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestRanksInWords(t *testing.T) {
	for words, want := range map[string][]int{
		"3": {3}, "0-3": {0, 1, 2, 3}, "7,0-1,1": {0, 1, 7}, "": nil,
	} {
		var list []string
		if words != "" {
			list = strings.Split(words, ",")
		}
		got, err := Parse(list)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v (-want +got):\n%s", words, err, diff)
		}
	}
	for _, words := range []string{"x", "-1", "3-1", "1-", "0-1000000", "1.5"} {
		if got, err := Parse([]string{words}); err == nil {
			t.Errorf("%q is %v", words, got)
		}
	}
}
