package controllers

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/fence"
	"github.com/davidlangworthy/jobtree/pkg/lane"
)

// tick has time go by for those who wait for it, and returns when they wait again.
func tick(clock *clocktesting.FakeClock, d time.Duration) {
	clock.Step(d)
	awaitWaiters(clock)
}

func awaitWaiters(clock *clocktesting.FakeClock) {
	for !clock.HasWaiters() {
		runtime.Gosched()
	}
}

// paged is an API server that lists Leases a few at a time.
type paged struct {
	client.WithWatch
	size  int
	lists int
	// expired is the page at which what the list is of has gone by; it happens once.
	expired int
	resumes bool   // says where to read on then
	between func() // is done after the first page
}

func (p *paged) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	leases, ok := list.(*rqv1.LeaseList)
	if !ok {
		return p.WithWatch.List(ctx, list, options...)
	}
	how := (&client.ListOptions{}).ApplyOptions(options)
	from := 0
	if how.Continue != "" {
		if _, err := fmt.Sscan(how.Continue, &from); err != nil {
			return err
		}
	}
	p.lists++
	if p.expired > 0 && from/p.size == p.expired {
		p.expired = 0
		err := apierrors.NewResourceExpired("the continue parameter is too old")
		if p.resumes {
			err.ErrStatus.Continue = how.Continue + " " // another token for the same place
		}
		return err
	}
	stored := &rqv1.LeaseList{}
	if err := p.WithWatch.List(ctx, stored); err != nil {
		return err
	}
	to := min(from+p.size, len(stored.Items))
	leases.Items = stored.Items[from:to]
	if leases.Continue = ""; to < len(stored.Items) {
		leases.Continue = fmt.Sprint(to)
	}
	if p.between != nil && from == 0 {
		p.between()
	}
	return nil
}

// keeping is the ledger of a process, over Leases that are stored, and what it is told of Runs.
func keeping(t *testing.T, s *server) (*ledger, *clocktesting.FakeClock) {
	t.Helper()
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	args.LedgerRetention.Duration = time.Hour
	clock := clocktesting.NewFakeClock(noon)
	l := newLedger(book.New(args), s.kinds, s.kube, believing(clock), args)
	l.changed = func(types.NamespacedName, lane.Work) {}
	return l, clock
}

// spentBy is what Budget b has paid, in hours of one GPU.
func spentBy(l *ledger) string {
	return fmt.Sprint(l.book.Budgets.Spent(noon)[budget.Key{Budget: "b", Envelope: "e"}])
}

// TestReadingTheLedger has a process read what its predecessors have left, in as many pages as there are, and while
// they may still write.
func TestReadingTheLedger(t *testing.T) {
	var leases []kruntime.Object
	for i := range 5 {
		leases = append(leases, closed("b", fmt.Sprint("l", i)))
	}
	five := fmt.Sprint(5 * budget.GPUHour)
	for name, test := range map[string]struct {
		expired int
		resumes bool
		faults  []fault
		late    bool // a predecessor's record is stored while the Leases are read
		tries   int
		lists   int
	}{
		"nothing is in the way":                {tries: 1, lists: 3},
		"the list goes by while it is read":    {expired: 1, tries: 2, lists: 5},
		"it goes by, and the rest can be read": {expired: 1, resumes: true, tries: 1, lists: 4},
		"a page is not answered": {faults: []fault{{on: "list leases", err: broken500, once: true}}, tries: 2,
			lists: 4},
		"the records are not answered": {faults: []fault{{on: "list configmaps", err: broken500, once: true}}, tries: 2,
			lists: 3},
		"the API server takes another for the leader": {faults: []fault{{on: "create leases", err: outrun, once: true}},
			tries: 2, lists: 3},
		"it is not reached at first": {faults: []fault{{on: "create leases", err: fenced, once: true}}, tries: 2, lists: 3},
		"it takes no GPU leases for another reason": {faults: []fault{{on: "create leases", err: forbidden}}, tries: 1,
			lists: 3},
		"a predecessor's write was late": {late: true, tries: 2, lists: 6},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, leases...)
			l, _ := keeping(t, s)
			p := &paged{WithWatch: s.kinds, size: 2, expired: test.expired, resumes: test.resumes}
			l.client = p
			if test.late {
				p.between = func() {
					p.between = nil
					old, _ := keeping(t, s)
					old.book.Begin(noon)
					for _, lease := range leases {
						old.book.SetLease(lease.(*rqv1.Lease))
					}
					old.book.Budgets.Settle("b", noon)
					if err := old.records.write(t.Context(), "b"); err != nil {
						t.Fatal(err)
					}
				}
			}
			s.faults = test.faults
			tries := 1
			for err := l.read(t.Context()); err != nil; err = l.read(t.Context()) {
				if tries++; tries > 3 {
					t.Fatal(err)
				}
			}
			if tries != test.tries || p.lists != test.lists {
				t.Errorf("read %d times, want %d, in %d pages, want %d", tries, test.tries, p.lists, test.lists)
			}
			l.book.Begin(noon)
			if got := spentBy(l); got != five {
				t.Errorf("spent are %s GPU-hours, want %s", got, five)
			}
		})
	}
}

// TestALeaderThatIsTakenForNone asks for some time, and gives the lead away then: another may be heard.
func TestALeaderThatIsTakenForNone(t *testing.T) {
	for name, test := range map[string]struct {
		faults []fault
		ends   bool
	}{
		"it is never taken for the leader": {[]fault{{on: "create leases", err: outrun}}, true},
		"it is at the last time": {slices.Repeat([]fault{{on: "create leases", err: outrun, once: true}}, presents-1),
			false},
		"it is not reached for long": {slices.Repeat([]fault{{on: "create leases", err: fenced, once: true}}, 2*presents),
			false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.faults = test.faults
			l, clock := keeping(t, s)
			ended := make(chan error, 1)
			go func() { ended <- l.readOnceLed(t.Context()) }()
			for {
				select {
				case err := <-ended:
					if fence.Outrun(err) != test.ends {
						t.Errorf("it ends with %v", err)
					}
					return
				default:
					if clock.HasWaiters() {
						clock.Step(time.Second)
					}
					runtime.Gosched()
				}
			}
		})
	}
}

// TestALeaseThatClosesWhileTheLedgerIsRead after it has been read: the watch alone tells, and what it spent counts.
func TestALeaseThatClosesWhileTheLedgerIsRead(t *testing.T) {
	var leases []kruntime.Object
	for i := range 5 {
		leases = append(leases, closed("b", fmt.Sprint("l", i)))
	}
	first := leases[0].(*rqv1.Lease)
	status := first.Status
	first.Status = rqv1.LeaseStatus{}
	s := newServer(t, leases...)
	l, _ := keeping(t, s)
	p := &paged{WithWatch: s.kinds, size: 2, expired: 2, resumes: true}
	p.between = func() {
		is := &rqv1.Lease{}
		if err := s.kinds.Get(t.Context(), client.ObjectKeyFromObject(first), is); err != nil {
			t.Fatal(err)
		}
		l.book.SetLease(is.DeepCopy())
		is.Status = status
		if err := s.kinds.Status().Update(t.Context(), is); err != nil {
			t.Fatal(err)
		}
	}
	l.client = p
	if err := l.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.book.LeaseGone(client.ObjectKeyFromObject(first))
	l.lookUp(t.Context(), l.book.Controllers().Take().Lookup)
	l.book.Begin(noon)
	if got, want := spentBy(l), fmt.Sprint(5*budget.GPUHour); got != want {
		t.Errorf("spent are %s GPU-hours, want %s", got, want)
	}
}

// TestWhatAPredecessorHasSettledIsDeletedOnce although it takes several tries to read the ledger.
func TestWhatAPredecessorHasSettledIsDeletedOnce(t *testing.T) {
	s := newServer(t, closed("b", "kept"), closed("b", "x"))
	old, _ := keeping(t, s)
	if err := old.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	old.book.Begin(noon)
	old.fold(noon)
	s.faults = []fault{{on: "delete leases", err: fenced}} // it loses the lead now
	old.storeSettled(t.Context())
	l, _ := keeping(t, s)
	s.faults = []fault{{on: "list leases", err: broken500, once: true}}
	for err := l.read(t.Context()); err != nil; err = l.read(t.Context()) {
	}
	l.book.Begin(noon)
	s.written()
	deleted := 0
	s.faults = []fault{{on: "delete leases kept", err: forbidden}}
	l.storeSettled(t.Context())
	s.faults = nil
	l.storeSettled(t.Context())
	for _, what := range s.written() {
		if what == "delete leases x" || what == "delete leases kept" {
			deleted++
		}
	}
	if _, left := l.settled.take(); deleted != 2 || len(left) > 0 {
		t.Errorf("%d are deleted, and still to be deleted are %v", deleted, left)
	}
	if got := spentBy(l); got != fmt.Sprint(2*budget.GPUHour) {
		t.Errorf("spent are %s GPU-hours, want 2", got)
	}
}

// TestLookingUpLeases has the API server asked about Leases that are no longer among the open ones.
func TestLookingUpLeases(t *testing.T) {
	open := func(name string) *rqv1.Lease {
		lease := closed("b", name)
		lease.Spec.RunRef, lease.Status = rqv1.LeaseRunRef{Namespace: "ns", Name: "of-" + name}, rqv1.LeaseStatus{}
		return lease
	}
	ended := open("ended")
	at := metav1.NewMicroTime(noon.Add(-30 * time.Minute))
	ended.Status = rqv1.LeaseStatus{Closed: true, Ended: &at, ClosureReason: rqv1.ClosedCompleted}
	s := newServer(t, ended)
	l, clock := keeping(t, s)
	var looked []string
	l.changed = func(run types.NamespacedName, _ lane.Work) { looked = append(looked, run.Name) }
	for _, name := range []string{"ended", "gone"} {
		l.book.SetLease(open(name))
	}
	l.book.Begin(noon)
	s.faults = []fault{{on: "get leases ended", err: broken500, once: true}}
	ctx, end := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		l.lookUp(ctx, []types.NamespacedName{{Namespace: "ns", Name: "ended"}, {Namespace: "ns", Name: "gone"}})
	}()
	awaitWaiters(clock)
	if len(looked) > 0 {
		t.Errorf("before the API server has answered, Runs were told of: %v", looked)
	}
	clock.Step(time.Second)
	<-over
	if diff := cmp.Diff([]string{"of-ended"}, looked); diff != "" {
		t.Errorf("Runs that are told (-want +got):\n%s", diff)
	}
	// Half an hour, and a whole one up to the instant at which it was found out that the other is gone.
	if got := spentBy(l); got != fmt.Sprint(budget.GPUHour/2+budget.GPUHour) {
		t.Errorf("spent are %s GPU-hours, want 1.5", got)
	}

	s.faults = []fault{{on: "get leases", err: broken500}}
	over = make(chan struct{})
	go func() {
		defer close(over)
		l.lookUp(ctx, []types.NamespacedName{{Namespace: "ns", Name: "ended"}})
	}()
	awaitWaiters(clock)
	end()
	<-over // nobody asks any more
}

// TestSettlingAsItAges has Leases settled and deleted as they reach the age, each once its record is stored.
func TestSettlingAsItAges(t *testing.T) {
	s := newServer(t, closed("b", "x"))
	l, clock := keeping(t, s)
	if err := l.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.book.Begin(noon)
	go l.settle(t.Context())
	awaitWaiters(clock)
	if got := s.written(); len(got) > 0 {
		t.Errorf("before its time: %v", got)
	}
	s.mu.Lock()
	s.faults = []fault{{on: "create configmaps", err: forbidden}}
	s.mu.Unlock()
	for range 61 {
		tick(clock, time.Minute)
	}
	if got := s.written(); len(got) > 0 {
		t.Errorf("without a record: %v", got)
	}
	s.mu.Lock()
	s.faults = nil
	s.mu.Unlock()
	tick(clock, time.Minute)
	if diff := cmp.Diff([]string{"create configmaps settled-b", "delete leases x"}, s.written()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	stored, err := s.kube.CoreV1().ConfigMaps(Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: labelRecord})
	if err != nil || len(stored.Items) != 1 {
		t.Errorf("stored are %v, %v", stored.Items, err)
	}
}
