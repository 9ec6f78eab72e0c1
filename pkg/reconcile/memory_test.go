package reconcile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
)

// problemOf is what is held against the Run of a name.
func (r *Runs) problemOf(name types.NamespacedName) string {
	held, _ := r.objections.Load(name)
	o, _ := held.(objection)
	return o.problem.text
}

// submitted is train as somebody submits it, with a UID.
func submitted(uid types.UID) *rqv1.Run {
	return &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train", UID: uid,
		CreationTimestamp: metav1.NewTime(noon)}, Spec: rqv1.RunSpec{Owner: "org:a",
		Resources: rqv1.RunResources{GPUType: "H100", TotalGPUs: 8}}}
}

// deciding is what reconciles Runs with a book that knows some.
func deciding(t *testing.T, api API, runs ...*rqv1.Run) (*Runs, *book.Book) {
	t.Helper()
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := book.New(args)
	for _, run := range runs {
		b.SetRun(run)
	}
	return New(b, api, lifecycle.RulesOf(args), func() time.Time { return noon }), b
}

func objectsOf(run *rqv1.Run) book.Objects { return book.Objects{Name: train, Run: run} }

// TestARunThatTheBookHasNotSeen is left alone: what its caches hold may be all there is, or half of it.
func TestARunThatTheBookHasNotSeen(t *testing.T) {
	api := &recorder{}
	runs, _ := deciding(t, api)
	out, err := runs.Reconcile(t.Context(), objectsOf(submitted("a")), nil)
	if err == nil || !strings.Contains(err.Error(), "ns/train") || len(api.calls) > 0 || out != (Outcome{}) {
		t.Errorf("%v, %+v; written: %v", err, out, api.calls)
	}
}

// TestARunThatNobodyPaysFor is told so and gets no pods, looked at once or twice.
func TestARunThatNobodyPaysFor(t *testing.T) {
	api := &recorder{}
	run := submitted("a")
	runs, _ := deciding(t, api, run)
	for range 2 {
		if _, err := runs.Reconcile(t.Context(), objectsOf(run), nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, call := range api.calls {
		if verb, _, _ := strings.Cut(call, " "); verb != "status" {
			t.Errorf("%q is written for a Run that nobody pays for", call)
		}
	}
	if len(api.calls) == 0 {
		t.Error("it is told nothing")
	}
}

// TestARunThatIsGone leaves nothing behind: what was held against it is forgotten with it.
func TestARunThatIsGone(t *testing.T) {
	api := &recorder{}
	runs, _ := deciding(t, api)
	o := observed()
	runs.note(&o, errQuota)
	if runs.problemOf(train) == "" {
		t.Fatal("a quota is not held against a Run")
	}
	if _, err := runs.Reconcile(t.Context(), objectsOf(nil), nil); err != nil {
		t.Fatal(err)
	}
	if got := runs.problemOf(train); got != "" || len(api.calls) > 0 {
		t.Errorf("%q is remembered of a Run that is gone; written: %v", got, api.calls)
	}
}

// TestANewRunOfTheSameName begins anew: somebody whose Run was not taken mends it, and submits it under the same name,
// and nobody need have looked between.
func TestANewRunOfTheSameName(t *testing.T) {
	large := apierrors.NewRequestEntityTooLargeError("train")
	for name, refused := range map[string]func(r *Runs, o lifecycle.Observed){
		"pods that a quota refuses": func(r *Runs, o lifecycle.Observed) { r.note(&o, errQuota) },
		"a Service of that name":    func(r *Runs, o lifecycle.Observed) { r.note(&o, NameTaken{"Service", "train"}) },
		"a status that cannot be written": func(r *Runs, o lifecycle.Observed) {
			out, err := r.CarryOut(t.Context(), o, lifecycle.Decision{Status: &rqv1.RunStatus{Phase: rqv1.RunRunning,
				Conditions: []metav1.Condition{{Type: rqv1.ConditionStarted, Status: metav1.ConditionTrue}}}})
			if err != nil || !errors.Is(out.Unsaid, large) || out.After != unsaidRest {
				t.Errorf("%v, %+v", err, out)
			}
		},
	} {
		old, mended := submitted("old"), submitted("mended")
		runs, b := deciding(t, &recorder{fails: map[string]error{"status": large}}, old)
		o, err := runs.See(objectsOf(old))
		if err != nil {
			t.Fatal(err)
		}
		refused(runs, o)
		again, err := runs.See(objectsOf(old))
		if err != nil || again.Problem == "" {
			t.Errorf("%s: it is not told to the Run (%v)", name, err)
		}
		if until := again.Unsaid; strings.Contains(name, "status") != until.Equal(noon.Add(unsaidRest)) {
			t.Errorf("%s: it gets no pods until %s", name, until)
		}
		b.SetRun(mended)
		next, err := runs.See(objectsOf(mended))
		if diff := cmp.Diff([]any{"", time.Time{}}, []any{next.Problem, next.Unsaid}); err != nil || diff != "" {
			t.Errorf("%s is held against the next Run of the name: %v\n%s", name, err, diff)
		}
	}
}

// TestWhatIsMendedIsForgotten as soon as all that was to be written is.
func TestWhatIsMendedIsForgotten(t *testing.T) {
	for name, c := range map[string]struct {
		then  error
		stays bool
	}{"it is taken": {nil, false}, "the API server is away": {errAway, true}, "it is refused again": {errQuota, true}} {
		runs, o := New(nil, &recorder{}, lifecycle.Rules{}, nil), observed()
		runs.note(&o, errQuota)
		runs.note(&o, c.then)
		if stays := runs.problemOf(train) != ""; stays != c.stays {
			t.Errorf("%s: remembered: %v", name, stays)
		}
	}
}

// TestARefusalIsToldAsItWas for a while, whatever it says by now: texts may tell of ports and times, and each that is
// told has it be tried again. Of nothing that is over is anything told.
func TestARefusalIsToldAsItWas(t *testing.T) {
	denied := func(port int) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "train-0",
			fmt.Errorf("refused from port %d", port))
	}
	ways := map[string]func(err error) (api *recorder, d lifecycle.Decision){
		"creations": func(err error) (*recorder, lifecycle.Decision) {
			return &recorder{fails: map[string]error{"create train-0": err}},
				lifecycle.Decision{Create: []*corev1.Pod{podOf("0")}}
		},
		"labels": func(err error) (*recorder, lifecycle.Decision) {
			return &recorder{fails: map[string]error{"adopt": err}},
				lifecycle.Decision{Adopt: []lifecycle.Adoption{{Pod: podOf("0")}}}
		},
		"deletions": func(err error) (*recorder, lifecycle.Decision) {
			return &recorder{fails: map[string]error{"delete": err}},
				lifecycle.Decision{Delete: []lifecycle.Deletion{{Pod: podOf("0")}}}
		},
	}
	for name, way := range ways {
		runs, _ := deciding(t, nil)
		o, told := observed(), []string{}
		for i, after := range []time.Duration{0, time.Second, 59 * time.Second, time.Minute, 61 * time.Second} {
			o.Now = noon.Add(after)
			api, d := way(denied(i))
			runs.api = api
			_, _ = runs.CarryOut(t.Context(), o, d)
			held := runs.heldAgainst(&o)
			o.Problem, o.Unended = held.problem.text, held.unended.text
			_, port, _ := strings.Cut(o.Problem+o.Unended, "port ")
			told = append(told, port)
		}
		if diff := cmp.Diff([]string{"0", "0", "0", "3", "3"}, told); diff != "" {
			t.Errorf("%s: the ports that are told (-want +got):\n%s", name, diff)
		}
		runs.api = &recorder{}
		if out, err := runs.CarryOut(t.Context(), o, lifecycle.Decision{}); err != nil || out.After != time.Second {
			t.Errorf("%s: once it is over, it is looked at after %s (%v)", name, out.After, err)
		}
		o.Problem, o.Unended = "", ""
		if out, err := runs.CarryOut(t.Context(), o, lifecycle.Decision{}); err != nil || out.After != 0 {
			t.Errorf("%s: once that is said, it is looked at after %s (%v)", name, out.After, err)
		}
	}
}

// TestNoWriteComesTwice within one decision, whatever fails: who comes after decides from what has been written.
func TestNoWriteComesTwice(t *testing.T) {
	for _, at := range []string{"", "ask", "delete", "ranks", "create train-0", "alive", "close", "service",
		"create train-1",
		"status"} {
		for _, err := range []error{errAway, errQuota, NameTaken{"Pod", "train-1"}} {
			api := &recorder{fails: map[string]error{at: err}}
			runs, _ := deciding(t, api)
			_, _ = runs.CarryOut(t.Context(), observed(), everything())
			calls := slices.Clone(api.calls)
			slices.Sort(calls)
			if len(slices.Compact(calls)) != len(api.calls) {
				t.Errorf("%v at %q: %v", err, at, api.calls)
			}
		}
	}
}

// TestWhyPodsAreDelayedIsTold once they have been for a while, also where nothing else is done before they are made.
func TestWhyPodsAreDelayedIsTold(t *testing.T) {
	api := &recorder{fails: map[string]error{"create train-0": errAway}}
	runs, _ := deciding(t, api)
	o, told := observed(), []string{}
	for range 3 {
		api.calls = nil
		if _, err := runs.CarryOut(t.Context(), o, everything()); !errors.Is(err, errAway) {
			t.Fatalf("%v", err)
		}
		told = append(told, fmt.Sprintf("%q, then %s", o.Problem, api.calls[len(api.calls)-1]))
		o.Now = o.Now.Add(toldAfter)
		o.Problem = runs.problemOf(train)
	}
	said := "the Run's pods could not be created yet: " + errAway.Error()
	closed := `"", then close train-1:Completed@0s`
	want := []string{closed, closed, fmt.Sprintf("%q, then status told", said)}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAStatusIsNotWaitedForLong that is to be told before pods go: they go after a moment, and it is tried again.
func TestAStatusIsNotWaitedForLong(t *testing.T) {
	api := &recorder{fails: map[string]error{"status": errAway}}
	runs, _ := deciding(t, api)
	o, written := observed(), map[time.Duration][]string{}
	for _, at := range []time.Duration{0, time.Second, longestUntold, longestUntold + time.Second} {
		api.calls, o.Now = nil, noon.Add(at)
		out, err := runs.CarryOut(t.Context(), o, lifecycle.Decision{Delete: []lifecycle.Deletion{{Pod: podOf("9")}},
			Close: []lifecycle.Closing{closing("1")}, Status: &rqv1.RunStatus{Phase: rqv1.RunFailed, Message: "failed"}})
		if written[at] = api.calls; !errors.Is(err, errAway) || (out.Unsaid != nil) != (at == longestUntold) {
			t.Errorf("after %s: %v, unsaid: %v", at, err, out.Unsaid)
		}
	}
	tried := []string{"status failed"}
	want := map[time.Duration][]string{0: tried, time.Second: tried, longestUntold + time.Second: tried,
		longestUntold: append(tried[:1:1], "delete train-9:own", "close train-1:Completed@0s")}
	if diff := cmp.Diff(want, written); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestASpareHoldsUpNoRank: ranks are made first, whatever the API server says of spares.
func TestASpareHoldsUpNoRank(t *testing.T) {
	spare := podOf("s0")
	spare.Labels[rqv1.LabelRole] = string(rqv1.RoleSpare)
	delete(spare.Labels, rqv1.LabelEpoch)
	for at, want := range map[string][]string{
		"create train-s0": {"create train-0 train-1#0", "create train-s0"},
		"create train-0":  {"create train-0 train-1#0"},
	} {
		api := &recorder{fails: map[string]error{at: errQuota}}
		runs, _ := deciding(t, api)
		_, err := runs.CarryOut(t.Context(), observed(), lifecycle.Decision{
			Create: []*corev1.Pod{podOf("0"), podOf("1"), spare}})
		if !errors.Is(err, errQuota) {
			t.Errorf("%s: %v", at, err)
		}
		if diff := cmp.Diff(want, api.calls); diff != "" {
			t.Errorf("%s (-want +got):\n%s", at, diff)
		}
	}
}
