package controllers

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

var train = types.NamespacedName{Namespace: "ns", Name: "train"}

func runAt(version string) *rqv1.Run {
	return &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: train.Namespace, Name: train.Name, UID: "run",
		ResourceVersion: version}}
}

// TestBehind writes a status and sees older and newer versions of the Run.
func TestBehind(t *testing.T) {
	s := statusWriter{written: &sync.Map{}}
	another := runAt("5")
	another.UID = "another"
	for _, step := range []struct {
		written string
		run     *rqv1.Run
		want    bool
	}{
		{"", runAt("5"), false},
		{"100", runAt("5"), true},
		{"", runAt("99"), true},
		{"", runAt("100"), false},
		{"", runAt("5"), false}, // what was seen once is not waited for again
		{"100", runAt("101"), false},
		{"100", nil, false},
		{"100", another, false},
		{"", runAt("5"), false}, // another Run of the name
	} {
		if step.written != "" {
			s.written.Store(train, write{"run", step.written})
		}
		if got := s.behind(train, step.run); got != step.want {
			t.Errorf("written %q, run %v: behind %v, want %v", step.written, step.run, got, step.want)
		}
	}
}

// TestWhatAStatusTells has a Run's status change in one way after the other.
func TestWhatAStatusTells(t *testing.T) {
	risk := func(status metav1.ConditionStatus, message string) []metav1.Condition {
		return []metav1.Condition{{Type: rqv1.ConditionAtRisk, Status: status, Reason: "Risk", Message: message}}
	}
	started := func(reason string) []metav1.Condition {
		return []metav1.Condition{{Type: rqv1.ConditionStarted, Status: metav1.ConditionTrue, Reason: reason}}
	}
	for name, c := range map[string]struct {
		was, is       rqv1.RunStatus
		opportunistic bool
		want          []string
	}{
		"nothing": {},
		"a start": {is: rqv1.RunStatus{Phase: rqv1.RunRunning, Message: "bound", Conditions: started("Started")}},
		"a start that is no plain one": {is: rqv1.RunStatus{Phase: rqv1.RunRunning, Message: "replacing",
			Conditions: started("Replacing")}, want: []string{"Normal Running replacing"}},
		"a width that is back": {was: rqv1.RunStatus{Phase: rqv1.RunRunning, Message: "replacing"},
			is:   rqv1.RunStatus{Phase: rqv1.RunRunning, Message: "bound", Conditions: started("Started")},
			want: []string{"Normal Running bound"}},
		"shards that start, and others that wait": {is: rqv1.RunStatus{Phase: rqv1.RunRunning,
			Message: "2 of 8 shards run; the others wait", Conditions: started("Started")}, opportunistic: true,
			want: []string{"Normal Running 2 of 8 shards run; the others wait"}},
		"a completion": {was: rqv1.RunStatus{Phase: rqv1.RunRunning, Message: "bound"},
			is: rqv1.RunStatus{Phase: rqv1.RunCompleted, Message: "all pods"}},
		"a failure": {is: rqv1.RunStatus{Phase: rqv1.RunFailed, Message: "rank 0"},
			want: []string{"Warning Failed rank 0"}},
		"a new message": {was: rqv1.RunStatus{Phase: rqv1.RunRunning, Message: "a"},
			is: rqv1.RunStatus{Phase: rqv1.RunRunning, Message: "b"}, want: []string{"Normal Running b"}},
		"a risk": {is: rqv1.RunStatus{Conditions: risk("True", "at two")}, want: []string{"Warning Risk at two"}},
		"a risk as it was": {was: rqv1.RunStatus{Conditions: risk("True", "at two")},
			is: rqv1.RunStatus{Conditions: risk("True", "at two")}},
		"a risk that is over": {was: rqv1.RunStatus{Conditions: risk("True", "at two")},
			is:   rqv1.RunStatus{Conditions: risk("False", "none")},
			want: []string{"Normal Risk none"}},
		"a condition that is not told": {
			is: rqv1.RunStatus{Conditions: []metav1.Condition{{Type: rqv1.ConditionStarted, Status: "True"}}}},
	} {
		recorder := events.NewFakeRecorder(10)
		run := runAt("1")
		run.Status, run.Spec.Opportunistic = c.was, c.opportunistic
		statusWriter{events: recorder}.tell(run, &c.is)
		if diff := cmp.Diff(c.want, told(recorder)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// told returns the events that a recorder was given.
func told(recorder *events.FakeRecorder) []string {
	close(recorder.Events)
	var out []string
	for event := range recorder.Events {
		out = append(out, event)
	}
	return out
}
