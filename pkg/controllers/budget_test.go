package controllers

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
)

// newBudgets returns what reports on one Budget, of eight GPUs, and its events.
func newBudgets(t *testing.T) (*budgetReporter, *rqv1.Budget, *events.FakeRecorder) {
	t.Helper()
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := rqv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	budget := &rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: "b", Generation: 1},
		Spec: rqv1.BudgetSpec{Owner: "o", Envelopes: []rqv1.Envelope{{Name: "e", Flavor: "H100", Concurrency: 8}}}}
	recorder := events.NewFakeRecorder(10)
	b := &budgetReporter{book: book.New(args), events: recorder, clock: clocktesting.NewFakeClock(noon),
		client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(budget).WithStatusSubresource(budget).Build()}
	b.book.Budgets.SetBudget(budget)
	b.book.Begin(noon)
	return b, budget, recorder
}

// holding is a Lease of some GPUs since an hour before noon.
func holding(gpus int32) *rqv1.Lease {
	l := closed("b", "holding")
	l.Spec.Slice.Nodes[0].GPUs, l.Status = gpus, rqv1.LeaseStatus{}
	return l
}

// TestBudgetStatusIsWorthAWrite has things happen to a Budget whose status was written before, and tells what is
// written then.
func TestBudgetStatusIsWorthAWrite(t *testing.T) {
	for name, test := range map[string]struct {
		happens func(b *budgetReporter, of *rqv1.Budget)
		later   time.Duration
		wrote   bool
		event   string
	}{
		"nothing":       {func(*budgetReporter, *rqv1.Budget) {}, hoursPeriod, false, ""},
		"GPUs are held": {func(b *budgetReporter, _ *rqv1.Budget) { b.book.SetLease(holding(4)) }, 0, true, ""},
		"more than there may be": {func(b *budgetReporter, _ *rqv1.Budget) { b.book.SetLease(holding(9)) }, 0, true,
			"Warning"},
		"the book has forgotten it": {func(b *budgetReporter, of *rqv1.Budget) { b.book.Budgets.DeleteBudget(of.Name) },
			hoursPeriod, false, ""},
		"it is gone": {func(b *budgetReporter, of *rqv1.Budget) {
			b.book.SetLease(holding(9))
			_ = b.client.Delete(context.Background(), of.DeepCopy())
		}, 0, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b, of, recorder := newBudgets(t)
			if wrote, err := b.write(t.Context(), of, noon); err != nil || !wrote {
				t.Fatalf("the first status: written %v, %v", wrote, err)
			}
			if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(of), of); err != nil {
				t.Fatal(err)
			}
			test.happens(b, of)
			at := noon.Add(test.later)
			b.book.Budgets.RefreshBudgets(at)
			if wrote, err := b.write(t.Context(), of, at); err != nil || wrote != test.wrote {
				t.Errorf("written %v, want %v: %v", wrote, test.wrote, err)
			}
			told := ""
			select {
			case told = <-recorder.Events:
			default:
			}
			if test.event == "" && told != "" || !strings.HasPrefix(told, test.event) {
				t.Errorf("told %q, want %q", told, test.event)
			}
		})
	}
}

// TestGPUHoursGrowOld writes them anew a while after they were written, while GPUs are held.
func TestGPUHoursGrowOld(t *testing.T) {
	b, of, _ := newBudgets(t)
	b.book.SetLease(holding(4))
	for _, step := range []struct {
		after time.Duration
		wrote bool
	}{{0, true}, {hoursPeriod / 2, false}, {hoursPeriod, true}, {hoursPeriod + time.Second, false}} {
		if wrote, err := b.write(t.Context(), of, noon.Add(step.after)); err != nil || wrote != step.wrote {
			t.Errorf("after %s: written %v, want %v: %v", step.after, wrote, step.wrote, err)
		}
		if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(of), of); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBudgetsThatCannotBeWrittenKeepNobodyWaiting has more of them than are written at a time, before all others.
func TestBudgetsThatCannotBeWrittenKeepNobodyWaiting(t *testing.T) {
	var objects []runtime.Object
	for i := range budgetWrites + 5 {
		name := fmt.Sprintf("bad%02d", i)
		if i >= budgetWrites {
			name = fmt.Sprintf("good%02d", i)
		}
		objects = append(objects, &rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1},
			Spec: rqv1.BudgetSpec{Owner: rqv1.Owner(name),
				Envelopes: []rqv1.Envelope{{Name: "e", Flavor: "H100", Concurrency: 8}}}})
	}
	b, _, _ := newBudgets(t)
	s := newServer(t, objects...)
	b.client, b.watched = s.kinds, cache.NewSharedIndexInformer(nil, &rqv1.Budget{}, 0, nil)
	see := func() {
		list := &rqv1.BudgetList{}
		if err := s.kinds.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			if err := b.watched.GetStore().Add(&list.Items[i]); err != nil {
				t.Fatal(err)
			}
			b.book.Budgets.SetBudget(&list.Items[i])
		}
	}
	s.faults = []fault{{on: "update status budgets bad", err: apierrors.NewBadRequest("too long")}}
	var wrote []int
	for range 3 {
		see()
		b.report(t.Context())
		b.clock.(*clocktesting.FakeClock).Step(budgetPeriod)
		wrote = append(wrote, len(s.written()))
	}
	if diff := cmp.Diff([]int{0, 5, 0}, wrote); diff != "" {
		t.Errorf("written of those that can be, second by second (-want +got):\n%s", diff)
	}
	s.faults = nil
	see()
	if b.report(t.Context()); len(s.written()) != budgetWrites {
		t.Errorf("those that can be written in the end are not")
	}
	if err := b.watched.GetStore().Replace(nil, ""); err != nil {
		t.Fatal(err)
	}
	if b.report(t.Context()); len(b.failed) > 0 {
		t.Errorf("Budgets that are gone are remembered: %v", b.failed)
	}
}

// TestWhatABudgetSaysOfItself has its owner's ancestors come to stand in a circle, however long, and be mended.
func TestWhatABudgetSaysOfItself(t *testing.T) {
	b, of, recorder := newBudgets(t)
	of = of.DeepCopy() // the book has the other
	b.client = newServer(t, of).kinds
	circle := func(size int) {
		owner := func(i int) rqv1.Owner {
			if i %= size; i == 0 {
				return "o"
			}
			return rqv1.Owner(fmt.Sprintf("%0200d", i))
		}
		for i := range size {
			other := &rqv1.Budget{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("other", i), Generation: int64(size)},
				Spec: rqv1.BudgetSpec{Owner: owner(i), Parents: []rqv1.Owner{owner(i + 1)}, Envelopes: of.Spec.Envelopes}}
			if i == 0 {
				of.Spec.Parents, of.Generation = other.Spec.Parents, of.Generation+1
				other = of
			}
			b.book.Budgets.SetBudget(other.DeepCopy())
		}
	}
	for _, step := range []struct {
		what string
		does func()
		told string
		is   metav1.ConditionStatus
	}{
		{"no circle", func() {}, "", ""},
		{"a circle of two", func() { circle(2) }, "Warning CircleOfParents", metav1.ConditionTrue},
		{"it is mended", func() {
			of.Spec.Parents = nil
			of.Generation++
			b.book.Budgets.SetBudget(of.DeepCopy())
		}, "Normal NoCircle", metav1.ConditionFalse},
		{"a circle that takes a book to tell", func() { circle(300) }, "Warning CircleOfParents", metav1.ConditionTrue},
	} {
		step.does()
		b.book.Budgets.RefreshBudgets(noon)
		if _, err := b.write(t.Context(), of, noon); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		parents, generation := of.Spec.Parents, of.Generation
		if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(of), of); err != nil {
			t.Fatal(err)
		}
		of.Spec.Parents, of.Generation = parents, generation
		condition, is := meta.FindStatusCondition(of.Status.Conditions, rqv1.ConditionCircular), metav1.ConditionStatus("")
		if condition != nil {
			if is = condition.Status; len(condition.Message) > 32768 {
				t.Errorf("%s: a message of %d bytes, which the API server refuses", step.what, len(condition.Message))
			}
		}
		event := ""
		if len(recorder.Events) > 0 {
			event = <-recorder.Events
		}
		if is != step.is || !strings.HasPrefix(event, step.told) || (event == "") != (step.told == "") {
			t.Errorf("%s: %q, told %.80q; want %q, %q", step.what, is, event, step.is, step.told)
		}
	}
}
