package controllers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/lifecycle"
	"github.com/davidlangworthy/jobtree/pkg/reconcile"
)

// TestInParallel does all there is to do, so many at a time, and tells of each that went wrong.
func TestInParallel(t *testing.T) {
	const n = 5 * writers
	var now, most atomic.Int32
	var did [n]atomic.Bool
	err := inParallel(n, func(i int) error {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		did[i].Store(true)
		if i%40 == 7 {
			return fmt.Errorf("%d went wrong", i)
		}
		return nil
	})
	for i := range did {
		if !did[i].Load() {
			t.Errorf("%d was not done", i)
		}
	}
	if most.Load() > writers {
		t.Errorf("%d were done at once, more than %d", most.Load(), writers)
	}
	if err == nil || err.Error() != "7 went wrong\n47 went wrong" {
		t.Errorf("told is %v", err)
	}
	if err := inParallel(0, nil); err != nil {
		t.Error(err)
	}
}

// TestIgnore lets through only errors of other kinds.
func TestIgnore(t *testing.T) {
	is := func(kind error) func(error) bool { return func(err error) bool { return errors.Is(err, kind) } }
	for _, test := range []struct {
		err  error
		want error
	}{{nil, nil}, {conflict, nil}, {notFound, nil}, {broken500, broken500}, {errors.Join(notFound), nil}} {
		got := ignore(test.err, is(conflict), is(notFound))
		if !errors.Is(got, test.want) || (got == nil) != (test.want == nil) {
			t.Errorf("%v is left of %v", got, test.err)
		}
	}
}

// TestMaking makes an object whose name something may have, that may go in between.
func TestMaking(t *testing.T) {
	same := rankOf(0, corev1.PodRunning)
	stranger := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train-0"}}
	taken := reconcile.NameTaken{Kind: "Pod", Name: "train-0"}
	earlier := same.DeepCopy()
	earlier.OwnerReferences[0].UID = "earlier"
	for name, test := range map[string]struct {
		err  error // of making it
		got  *corev1.Pod
		gets error
		want error
	}{
		"made":                       {},
		"refused":                    {err: forbidden, want: forbidden},
		"there, the same Run's":      {err: there, got: same},
		"there, a stranger":          {err: there, got: stranger, want: taken},
		"there, and gone when asked": {err: there, gets: notFound},
		"there, and nobody can say":  {err: there, gets: broken500, want: broken500},
		"no answer":                  {err: context.DeadlineExceeded, want: context.DeadlineExceeded},
		"not while others lead":      {err: fenced, want: fenced},
		"there, of an earlier Run":   {err: there, got: earlier, want: taken},
	} {
		err := made(t.Context(), "Pod", same, test.err,
			func(context.Context, string, metav1.GetOptions) (*corev1.Pod, error) { return test.got, test.gets })
		if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
}

// TestStatusesThatAreNotTaken: what is told is what is stored, and a status that was not stored is not waited for.
func TestStatusesThatAreNotTaken(t *testing.T) {
	for name, test := range map[string]struct {
		faults []fault
		behind bool // somebody has written the Run since
		err    error
		stored bool
		told   int
		after  bool // the cache lacks it then
	}{
		"taken":                        {stored: true, told: 1, after: true},
		"somebody has written the Run": {behind: true, err: conflict},
		"the Run is gone":              {faults: []fault{{on: "update status", err: notFound}}},
		"the policy says no":           {faults: []fault{{on: "update status", err: forbidden}}, err: forbidden},
		"no answer":                    {faults: []fault{{on: "update status", err: broken500}}, err: broken500},
		"stored, and no answer": {
			faults: []fault{{on: "update status", err: broken500, stored: true}}, err: broken500, stored: true},
		"this process does not lead at all": {faults: []fault{{on: "update status", err: fenced}}, err: fenced},
	} {
		t.Run(name, func(t *testing.T) {
			s, recorder := newServer(t, runAt("")), events.NewFakeRecorder(10)
			w := statusWriter{client: s.kinds, events: recorder, clock: clocktesting.NewFakeClock(noon), written: &sync.Map{}}
			run := &rqv1.Run{}
			if err := s.kinds.Get(t.Context(), train, run); err != nil {
				t.Fatal(err)
			}
			o := lifecycle.Observed{}
			if o.Run = run.DeepCopy(); test.behind {
				if err := s.kinds.Update(t.Context(), run); err != nil {
					t.Fatal(err)
				}
			}
			s.faults = test.faults
			err := w.WriteStatus(t.Context(), &o, &rqv1.RunStatus{Phase: rqv1.RunRunning, Message: "bound"})
			if (err == nil) != (test.err == nil) {
				t.Errorf("%v, want %v", err, test.err)
			}
			s.faults = nil
			if err := s.kinds.Get(t.Context(), train, run); err != nil {
				t.Fatal(err)
			}
			behind := w.behind(train, o.Run)
			if got := run.Status.Message == "bound"; got != test.stored || len(recorder.Events) != test.told ||
				behind != test.after {
				t.Errorf("stored %v, told %d times, awaited %v", got, len(recorder.Events), behind)
			}
			if o.Run.Status.Message != "" {
				t.Error("what is cached was changed")
			}
		})
	}
}

// TestReservationsThatAreNotTaken: nothing is told, and nothing known, of what is not stored. What is stored although
// nobody said so is found when it is made again.
func TestReservationsThatAreNotTaken(t *testing.T) {
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		fault  fault
		second string // what making it again comes to
	}{
		"no answer":             {fault{err: broken500}, "Reserved"},
		"stored, and no answer": {fault{err: broken500, stored: true}, "Reserved"},
		"the policy says no":    {fault{err: forbidden}, "Reserved"},
		"not while others lead": {fault{err: fenced}, "Reserved"},
	} {
		recorder := events.NewFakeRecorder(10)
		s := newServer(t)
		w := reservationWriter{book: book.New(args), client: s.kinds, events: recorder}
		test.fault.on = "create reservations"
		s.faults = []fault{test.fault}
		create := func() (*rqv1.Reservation, error) {
			return w.WriteReservation(t.Context(), &lifecycle.Write{Verb: lifecycle.Create, Reservation: reserved("", "")})
		}
		if r, err := create(); !errors.Is(err, test.fault.err) || r != nil || len(recorder.Events) > 0 {
			t.Errorf("%s: %v, %v, told %d times", name, r, err, len(recorder.Events))
		}
		s.faults = nil
		r, err := create()
		if err != nil || r.ResourceVersion == "" {
			t.Fatalf("%s: then %v, %v", name, r, err)
		}
		if got := told(recorder); len(got) != 1 || !strings.Contains(got[0], test.second) {
			t.Errorf("%s: told %v", name, got)
		}
		if diff := cmp.Diff([]string{"create reservations train-r0"}, s.written()); diff != "" {
			t.Errorf("%s: written (-want +got):\n%s", name, diff)
		}
	}
}

// TestLeasesThatAreNotClosed: what could not be closed keeps no other from it, and counts as closed only once it is.
func TestLeasesThatAreNotClosed(t *testing.T) {
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		err   error
		fails bool
	}{
		"it is gone":                   {notFound, false},
		"it has been closed meanwhile": {conflict, false},
		"the policy says no":           {forbidden, true},
		"no answer":                    {broken500, true},
		"not while others lead":        {fenced, true},
	} {
		s, b := newServer(t), book.New(args)
		var ended []*rqv1.Lease
		for _, of := range []string{"x", "y", "z"} {
			lease := closed("b", of)
			status := lease.Status
			lease.Status = rqv1.LeaseStatus{}
			if err := s.kinds.Create(t.Context(), lease); err != nil {
				t.Fatal(err)
			}
			b.SetLease(lease)
			lease = lease.DeepCopy()
			lease.Status = status
			ended = append(ended, lease)
		}
		b.Begin(noon)
		s.faults = []fault{{on: "update status leases y", err: test.err}}
		got, err := leaseWriter{book: b, client: s.kinds, lost: func([]string) {}}.CloseLeases(t.Context(), ended)
		if (err != nil) != test.fails || len(got) != 2 || got[0].Name != "x" || got[1].Name != "z" {
			t.Errorf("%s: %v closed, %v", name, got, err)
		}
		// Two have ended at noon, after an hour; the third counts on, and they wait for it no longer than two seconds.
		b.Advance(noon.Add(time.Second))
		b.Advance(noon.Add(2 * time.Second))
		spent := b.Budgets.Spent(noon.Add(time.Hour))[budget.Key{Budget: "b", Envelope: "e"}]
		if spent != 4*budget.GPUHour {
			t.Errorf("%s: %s GPU-hours are spent by one o'clock, want 4", name, spent)
		}
	}
}

// TestEvidenceThatCannotBeHad is none (I12), and keeps nobody from having other evidence.
func TestEvidenceThatCannotBeHad(t *testing.T) {
	questions := []reconcile.Question{{If: lifecycle.NodeLost, Node: "n"}, {If: lifecycle.RunGone, Run: train, UID: "u"},
		{If: lifecycle.Unpaid, Lease: train}}
	for name, test := range map[string]struct {
		faults []fault
		want   []bool
	}{
		"all of it can":      {want: []bool{true, true, true}},
		"that of nodes not":  {faults: []fault{{on: "get nodes", err: broken500}}, want: []bool{false, true, true}},
		"that of Runs not":   {faults: []fault{{on: "get runs", err: forbidden}}, want: []bool{true, false, true}},
		"that of Leases not": {faults: []fault{{on: "get leases", err: broken500}}, want: []bool{true, true, false}},
		"none of it": {faults: []fault{{on: "get", err: context.DeadlineExceeded}},
			want: []bool{false, false, false}},
	} {
		s := newServer(t)
		s.faults = test.faults
		got, err := evidence{client: s.kinds, kube: s.kube, gone: &endedPods{}}.Ask(t.Context(), questions)
		if diff := cmp.Diff(test.want, got); diff != "" || (err != nil) != (test.faults != nil) {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	s := newServer(t)
	s.faults = []fault{{on: "list", err: broken500}}
	if ranks, err := (evidence{client: s.kinds}).RankLeases(t.Context(), runAt("1"), []string{"0"}); err == nil {
		t.Errorf("Leases of ranks, of nobody: %v", ranks)
	}
}
