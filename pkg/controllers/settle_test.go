package controllers

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
)

// Get finds Leases that are there, and those that are kept although they were deleted.
func (d *deletes) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.Contains(d.kept, key.Name) || !slices.Contains(d.gone, key.Name) {
		return nil
	}
	return apierrors.NewNotFound(rqv1.GroupVersion.WithResource("leases").GroupResource(), key.Name)
}

// closed is a Lease of one GPU for an hour that ended at noon.
func closed(budget, name string) *rqv1.Lease {
	ended := metav1.NewMicroTime(noon)
	return &rqv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: rqv1.LeaseSpec{
		Owner: "o", Slice: rqv1.LeaseSlice{Role: rqv1.RoleActive, Nodes: []rqv1.NodeGPUs{{Name: "n", GPUs: 1}}},
		Payer: rqv1.LeasePayer{Budget: budget, Owner: "o"}, PaidByEnvelope: "e",
		Start: metav1.NewMicroTime(noon.Add(-time.Hour)),
	}, Status: rqv1.LeaseStatus{Closed: true, Ended: &ended, ClosureReason: rqv1.ClosedCompleted}}
}

// spentAfter is what a process that comes after finds in the records and in the Leases that are left.
func spentAfter(t *testing.T, s *store, left ...*rqv1.Lease) budget.Spend {
	t.Helper()
	next, _ := leader(t, s)
	if _, _, err := next.records.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, lease := range left {
		next.book.SetLease(lease)
	}
	next.book.Begin(noon)
	return next.book.Budgets.Spent(noon)[budget.Key{Budget: "b", Envelope: "e"}]
}

// A settled Lease that somebody's finalizer keeps when it is deleted is not gone: it counts once, now and after a
// restart.
func TestALeaseThatIsKeptCountsOnce(t *testing.T) {
	s := newStore()
	c, d := leader(t, s)
	spend(c, "b", "kept")
	d.kept = []string{"kept"}
	c.storeSettled(t.Context())
	c.settled.changed([]string{"b"}) // the record is written again, for whatever reason
	c.storeSettled(t.Context())
	if got := spentAfter(t, s, closed("b", "kept")); got != budget.GPUHour {
		t.Errorf("%s GPU-hours are spent after a restart, want 1", got)
	}
	d.kept = nil
	c.storeSettled(t.Context())
	if _, left := c.settled.take(); len(left) > 0 {
		t.Errorf("Leases that are gone by now are still to be deleted: %v", left)
	}
}

// A namespace may hang for long after its Leases are gone: what they spent is recorded when it is told to go.
func TestWhatANamespaceSpentThatIsToldToGo(t *testing.T) {
	s := newStore()
	c, d := leader(t, s)
	c.book.Begin(noon)
	c.book.SetLease(closed("b", "x"))
	told := make(chan []string, 1)
	shared := informers.NewSharedInformerFactory(fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "ns", DeletionTimestamp: &metav1.Time{Time: noon}, Finalizers: []string{"somebody.example/hangs"}}}), 0)
	if err := newWatches(nil, s).feed(c.book, shared, nil, func(budgets []string) { told <- budgets }); err != nil {
		t.Fatal(err)
	}
	go shared.Core().V1().Namespaces().Informer().RunWithContext(t.Context())
	if diff := cmp.Diff([]string{"b"}, <-told); diff != "" {
		t.Fatalf("Budgets that are to be settled (-want +got):\n%s", diff)
	}
	if !c.fold(noon.Add(-time.Hour)) {
		t.Fatal("nothing is settled")
	}
	c.storeSettled(t.Context())
	for left, leases := range map[string][]*rqv1.Lease{"gone": nil, "not gone yet": {closed("b", "x")}} {
		if got := spentAfter(t, s, leases...); got != budget.GPUHour {
			t.Errorf("%s GPU-hours are spent after a restart when the Lease is %s, want 1", got, left)
		}
	}
	if diff := cmp.Diff([]string{"x"}, d.gone); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
}

// What is closed while its namespace goes is recorded at once, and not within a minute: its object may be gone by then.
func TestWhatIsClosedWhileItsNamespaceGoesIsRecordedAtOnce(t *testing.T) {
	s := newStore()
	c, _ := leader(t, s)
	c.book.Begin(noon)
	c.settled.storeSoon(c.book.Budgets.NamespaceLeaves("ns", false))
	last := closed("b", "x")
	last.Status = rqv1.LeaseStatus{}
	c.settled.storeSoon(c.book.SetLease(last))
	select {
	case <-c.settled.hurry:
		t.Error("there is nothing to be settled yet")
	default:
	}
	last = last.DeepCopy()
	ended := metav1.NewMicroTime(c.clock.Now())
	last.Status = rqv1.LeaseStatus{Closed: true, Ended: &ended, ClosureReason: rqv1.ClosedDeleted}
	closer := leaseWriter{book: c.book, client: &answers{}, lost: c.settled.storeSoon}
	if _, err := closer.CloseLeases(t.Context(), []*rqv1.Lease{last}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.settled.hurry:
	default:
		t.Fatal("nothing hurries")
	}
	c.fold(noon.Add(-time.Hour))
	c.storeSettled(t.Context())
	if got := spentAfter(t, s); got != budget.GPUHour {
		t.Errorf("%s GPU-hours are spent after a restart, want 1", got)
	}
}

// TestTheLedgerIsBounded has one Budget's Leases pile up beside those of another, which has few: only its own go.
func TestTheLedgerIsBounded(t *testing.T) {
	s := newStore()
	c, d := leader(t, s)
	c.book.Begin(noon)
	c.limit = 5
	for i := range 9 {
		c.book.SetLease(closed("b", fmt.Sprint("many", i)))
	}
	c.book.SetLease(closed("c", "one"))
	c.book.SetLease(closed("c", "two"))
	if c.foldBeyond(t.Context(), noon.Add(-time.Second)) {
		t.Error("what is younger has gone")
	}
	if !c.foldBeyond(t.Context(), noon) {
		t.Error("nothing has gone")
	}
	c.storeSettled(t.Context())
	for _, name := range []string{"one", "two"} {
		if slices.Contains(d.gone, name) {
			t.Errorf("Lease %s of the Budget that has few has gone", name)
		}
	}
	if len(d.gone) < 6 {
		t.Errorf("gone are %q, want 6 or more", d.gone)
	}
	if got := spentAfter(t, s); got != 9*budget.GPUHour {
		t.Errorf("%s GPU-hours are in the record, want 9", got)
	}
}

// TestManyLeasesAreDeletedWithoutARest, a number of them at a time, unless none of them can be.
func TestManyLeasesAreDeletedWithoutARest(t *testing.T) {
	s := newStore()
	c, d := leader(t, s)
	for i := range 2*deletedAtOnce + 1 {
		spend(c, "b", fmt.Sprint("x", i))
	}
	for i, want := range []bool{true, true, false} {
		if more := c.storeSettled(t.Context()); more != want {
			t.Errorf("the %d. time others can be deleted: %v", i+1, more)
		}
	}
	if len(d.gone) != 2*deletedAtOnce+1 || c.settled.undeleted() != 0 {
		t.Errorf("%d are deleted, and %d are left", len(d.gone), c.settled.undeleted())
	}
}
