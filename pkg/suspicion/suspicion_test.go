package suspicion

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// program is a Run of an owner with a rank that died on a node by itself, some time after noon.
func program(name string, owner rqv1.Owner, node string, after time.Duration, edit ...func(*rqv1.Run)) *rqv1.Run {
	run := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
	run.Spec.Owner = owner
	run.Spec.Runtime = &rqv1.RunRuntime{Checkpoint: &metav1.Duration{Duration: 5 * time.Minute}}
	run.Status.Phase = rqv1.RunRunning
	run.Status.Deaths = []rqv1.RunDeath{{Pod: "p", Node: node, Cause: rqv1.CauseProgram, Sign: "Error", First: true,
		Incident: 1,
		Action:   rqv1.ActionRestart, At: metav1.NewTime(noon.Add(after))}}
	run.Status.Restarts = &rqv1.RunRestartsStatus{Incidents: 1, Counted: 1, Began: run.Status.Deaths[0].At}
	for _, change := range edit {
		change(run)
	}
	return run
}

func moved(ready time.Duration) func(*rqv1.Run) {
	return func(run *rqv1.Run) {
		at := metav1.NewTime(noon.Add(ready))
		run.Status.Deaths[0].Action, run.Status.Restarts.Ready = rqv1.ActionMove, &at
	}
}

// whys tells what was found, in a few words.
func whys(findings []Finding) (out []string) {
	for _, f := range findings {
		out = append(out, fmt.Sprintf("%s %s %s", f.Node, f.Why, f.At.Sub(noon)))
	}
	return out
}

// TestWhatARunSays is what one Run's status says against nodes.
func TestWhatARunSays(t *testing.T) {
	for name, c := range map[string]struct {
		run  *rqv1.Run
		now  time.Duration
		want []string
		due  time.Duration
	}{
		"a rank that died": {run: program("r", "a", "n", 0)},
		"a rank that was moved and is not ready": {run: program("r", "a", "n", 0, moved(0), func(run *rqv1.Run) {
			run.Status.Restarts.Ready = nil
		})},
		"a rank that was moved just now": {run: program("r", "a", "n", 0, moved(time.Minute)), due: 11 * time.Minute},
		"a rank that lives on elsewhere": {program("r", "a", "n", 0, moved(time.Minute)), 11 * time.Minute,
			[]string{"n LivesElsewhere 0s"}, 0},
		"a rank that lived on for long": {run: program("r", "a", "n", 0, moved(time.Minute)), now: 25 * time.Hour},
		"one whose Run has ended since then": {run: program("r", "a", "n", 0, moved(0), func(run *rqv1.Run) {
			run.Status.Phase = rqv1.RunFailed
		}), now: time.Hour},
		"a node that turns a rank away": {program("r", "a", "n", 0, func(run *rqv1.Run) {
			run.Status.Deaths[0].Cause, run.Status.Deaths[0].Sign = rqv1.CauseNode, "OutOfnvidia.com/gpu"
		}), 0, []string{"n EndedRank 0s"}, 0},
		"a node where CPUs cannot be aligned as a pod asks": {run: program("r", "a", "n", 0, func(run *rqv1.Run) {
			run.Status.Deaths[0].Cause, run.Status.Deaths[0].Sign = rqv1.CauseNode, "SMTAlignmentError"
		})},
		"nor devices": {run: program("r", "a", "n", 0, func(run *rqv1.Run) {
			run.Status.Deaths[0].Cause, run.Status.Deaths[0].Sign = rqv1.CauseNode, "TopologyAffinityError"
		})},
		"a node that is drained": {run: program("r", "a", "n", 0, func(run *rqv1.Run) {
			run.Status.Deaths[0].Cause, run.Status.Deaths[0].Sign = rqv1.CauseNode, "EvictionByEvictionAPI"
		})},
	} {
		findings, due := Told(c.run, noon.Add(c.now))
		if diff := cmp.Diff(c.want, whys(findings)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if due.IsZero() != (c.due == 0) || c.due > 0 && !due.Equal(noon.Add(c.due)) {
			t.Errorf("%s: to be looked at again at %s, want %s after noon", name, due, c.due)
		}
	}
}

// TestTwoOwners has ranks of several Runs die on one node.
func TestTwoOwners(t *testing.T) {
	cascade := func(run *rqv1.Run) { run.Status.Deaths[0].First = false }
	unrestarted := func(run *rqv1.Run) {
		d := &run.Status.Deaths[0]
		d.First, d.Incident, run.Status.Restarts = false, 0, nil
	}
	for name, c := range map[string]struct {
		other *rqv1.Run
		want  []string
	}{
		"of two owners":                  {program("o", "b", "n", 10*time.Minute), []string{"n TwoOwners 10m0s"}},
		"of two owners, the other first": {program("o", "b", "n", -10*time.Minute), []string{"n TwoOwners 0s"}},
		"of one owner":                   {program("o", "a", "n", 10*time.Minute), nil},
		"long apart":                     {program("o", "b", "n", 2*time.Hour), nil},
		"on two nodes":                   {program("o", "b", "m", 10*time.Minute), nil},
		"one of which died of others":    {program("o", "b", "n", 10*time.Minute, cascade), nil},
		"one of which ended its Run": {program("o", "b", "n", 10*time.Minute, unrestarted),
			[]string{"n TwoOwners 10m0s"}},
	} {
		tally := NewTally()
		own := program("r", "a", "n", 0)
		tally.Note(own)
		tally.Note(c.other)
		tally.Note(own) // its status was written again
		if diff := cmp.Diff(c.want, whys(tally.On(own.UID, noon.Add(3*time.Hour)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		tally.Drop(c.other.UID)
		if left := tally.On(own.UID, noon.Add(3*time.Hour)); left != nil {
			t.Errorf("%s: when the other is gone: %v", name, left)
		}
	}
}

// TestARecord keeps the latest marks, each once, and none of before it was cleared.
func TestARecord(t *testing.T) {
	r := Record{}
	for i := range 10 {
		mark := Mark{At: noon.Add(time.Duration(i) * time.Minute), Why: EndedRank, Message: fmt.Sprint(i)}
		added := false
		if r, added = r.With(mark); !added {
			t.Errorf("mark %d was not added", i)
		}
		if r, added = r.With(mark); added {
			t.Errorf("mark %d was added twice", i)
		}
	}
	if len(r.Marks) != mostMarks || r.Marks[0].Message != "2" {
		t.Errorf("it keeps %v", r.Marks)
	}
	if want := noon.Add(9*time.Minute + For); !r.Until().Equal(want) {
		t.Errorf("it is suspect until %s, want %s", r.Until(), want)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{rqv1.AnnotationSuspect: r.String()}}}
	if diff := cmp.Diff(r, Of(node)); diff != "" {
		t.Errorf("it is read otherwise than written (-want +got):\n%s", diff)
	}
	r.Cleared = noon.Add(time.Hour)
	if !r.Until().IsZero() {
		t.Errorf("cleared, it is suspect until %s", r.Until())
	}
	if _, added := r.With(Mark{At: noon.Add(30 * time.Minute), Why: LivesElsewhere}); added {
		t.Error("what was before it was cleared counts again")
	}
	if _, added := r.With(Mark{At: noon.Add(2 * time.Hour), Why: LivesElsewhere}); !added {
		t.Error("what is new does not count")
	}
	node.Annotations[rqv1.AnnotationSuspect] = "hot"
	if diff := cmp.Diff(Record{}, Of(node)); diff != "" {
		t.Errorf("what nobody can read says: %s", diff)
	}
}

// TestClearedByAClockThatIsBehind has somebody clear a node whose own clock is behind the marks against it.
func TestClearedByAClockThatIsBehind(t *testing.T) {
	r, _ := Record{}.With(Mark{At: noon, Why: LivesElsewhere})
	r = r.Clear(noon.Add(-time.Hour))
	if until := r.Until(); !until.IsZero() {
		t.Errorf("it is suspect until %s", until)
	}
	if r, added := r.With(Mark{At: noon, Why: TwoOwners}); added {
		t.Errorf("what came before is told again: %v", r)
	}
}

// TestWhatAProgramSaysStaysInItsNamespace: everybody who reads Nodes would read it.
func TestWhatAProgramSaysStaysInItsNamespace(t *testing.T) {
	secret := func(run *rqv1.Run) {
		d := &run.Status.Deaths[0]
		d.Container, d.ExitCode, d.Message = "main", 7, "cannot log in with hunter2"
	}
	own, tally := program("r", "a", "n", 0, moved(0), secret), NewTally()
	tally.Note(own)
	tally.Note(program("o", "b", "n", time.Minute, secret))
	findings, _ := Told(own, noon.Add(time.Hour))
	var got []string
	for _, f := range append(findings, tally.On(own.UID, noon.Add(time.Hour))...) {
		got = append(got, f.Message)
	}
	ended := "rank 0 ended on node n, because of its program: Error (container main, exit code 7)"
	want := []string{"Run ns/r: " + ended + ", and lives on another node",
		"ranks of two owners died here: Run ns/r: " + ended + "; Run ns/o: " + ended}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	node := program("r", "a", "n", 0, func(run *rqv1.Run) {
		d := &run.Status.Deaths[0]
		d.Cause, d.Sign, d.Message = rqv1.CauseNode, "Unhealthy", "nvidia.com/gpu GPU-3"
	})
	kubelets := "Run ns/r: rank 0 ended on node n, because of the node: Unhealthy: nvidia.com/gpu GPU-3"
	findings, _ = Told(node, noon)
	if len(findings) != 1 || findings[0].Message != kubelets {
		t.Errorf("what a kubelet says is told: %v", findings)
	}
}
