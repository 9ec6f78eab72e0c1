package controllers

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
