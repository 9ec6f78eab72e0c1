package watch

import (
	"io"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/clitest"
	"github.com/davidlangworthy/jobtree/pkg/cli/session"
)

func TestReached(t *testing.T) {
	all := []rqv1.RunPhase{rqv1.RunPending, rqv1.RunRunning, rqv1.RunCompleted, rqv1.RunFailed}
	for _, c := range []struct {
		awaited rqv1.RunPhase
		by      []rqv1.RunPhase
	}{
		{"", []rqv1.RunPhase{rqv1.RunCompleted}},
		{rqv1.RunPending, all},
		{rqv1.RunRunning, []rqv1.RunPhase{rqv1.RunRunning, rqv1.RunCompleted}},
		{rqv1.RunCompleted, []rqv1.RunPhase{rqv1.RunCompleted}},
		{rqv1.RunFailed, []rqv1.RunPhase{rqv1.RunFailed}},
	} {
		for _, phase := range all {
			want := false
			for _, by := range c.by {
				want = want || by == phase
			}
			if got := reached(c.awaited, phase); got != want {
				t.Errorf("reached(%q, %s) = %v", c.awaited, phase, got)
			}
		}
	}
}

func TestOutcome(t *testing.T) {
	phase := func(p rqv1.RunPhase) rqv1.RunStatus { return rqv1.RunStatus{Phase: p, Message: "so it is"} }
	for name, c := range map[string]struct {
		until   rqv1.RunPhase
		a, b    rqv1.RunPhase
		deleted bool // b, as it was
		over    bool
		code    int
	}{
		"both completed":            {a: rqv1.RunCompleted, b: rqv1.RunCompleted, over: true},
		"one goes on":               {a: rqv1.RunCompleted, b: rqv1.RunRunning},
		"one failed, one goes on":   {a: rqv1.RunFailed, b: rqv1.RunRunning},
		"one failed, one completed": {a: rqv1.RunFailed, b: rqv1.RunCompleted, over: true, code: session.ExitNotReached},
		"one deleted": {a: rqv1.RunCompleted, b: rqv1.RunRunning, deleted: true, over: true,
			code: session.ExitNotReached},
		"awaited, one deleted that runs": {until: rqv1.RunCompleted, a: rqv1.RunRunning, b: rqv1.RunRunning, deleted: true,
			over: true, code: session.ExitNotReached},
		"one completed and its time is over": {a: rqv1.RunRunning, b: rqv1.RunCompleted, deleted: true},
		"both completed and one's time is over": {a: rqv1.RunCompleted, b: rqv1.RunCompleted, deleted: true,
			over: true},
		"awaited, one completed and its time is over": {until: rqv1.RunCompleted, a: rqv1.RunRunning, b: rqv1.RunCompleted,
			deleted: true},
		"one failed and its time is over": {a: rqv1.RunCompleted, b: rqv1.RunFailed, deleted: true, over: true,
			code: session.ExitNotReached},
		"awaited, one started":  {until: rqv1.RunRunning, a: rqv1.RunRunning, b: rqv1.RunPending},
		"awaited, both started": {until: rqv1.RunRunning, a: rqv1.RunRunning, b: rqv1.RunCompleted, over: true},
		"awaited, one can no more": {until: rqv1.RunRunning, a: rqv1.RunPending, b: rqv1.RunFailed, over: true,
			code: session.ExitNotReached},
		"awaited failure, it is there": {until: rqv1.RunFailed, a: rqv1.RunFailed, b: rqv1.RunFailed, over: true},
	} {
		w := &runWatch{Session: &session.Session{}, namespace: "rai", names: []string{"a", "b"}, phase: c.until,
			report: &reporter{out: io.Discard, now: time.Now},
			runs:   map[types.NamespacedName]*rqv1.Run{}, last: map[string]*rqv1.Run{}}
		for name, p := range map[string]rqv1.RunPhase{"a": c.a, "b": c.b} {
			w.runs[types.NamespacedName{Namespace: "rai", Name: name}] = clitest.Ptr(clitest.RunOf(name, 8, 0, phase(p)))
		}
		if c.deleted {
			w.gone(w.runs[types.NamespacedName{Namespace: "rai", Name: "b"}], "")
		}
		over, err := w.outcome()
		code := 0
		if err != nil {
			code = err.(*session.Failure).Code
		}
		if over != c.over || code != c.code {
			t.Errorf("%s: over %v with code %d, want %v with %d", name, over, code, c.over, c.code)
		}
	}
}
