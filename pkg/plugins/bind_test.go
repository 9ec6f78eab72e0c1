package plugins

import (
	stdcmp "cmp"
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fwk "k8s.io/kube-scheduler/framework"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/fence"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// What an API server may answer.
var (
	forbidden = apierrors.NewForbidden(schema.GroupResource{}, "it", errors.New("the policy says no"))
	notFound  = apierrors.NewNotFound(schema.GroupResource{}, "it")
	internal  = apierrors.NewInternalError(errors.New("etcd is away"))
)

// leaseOf is the Lease of a pod as it is stored; nil where there is none.
func (g *gang) leaseOf(pod *corev1.Pod) *rqv1.Lease {
	lease := &rqv1.Lease{}
	key := client.ObjectKey{Namespace: pod.Namespace, Name: rank.LeaseName(pod.Name, pod.UID)}
	if err := g.ledger.Get(g.t.Context(), key, lease); err != nil {
		return nil
	}
	return lease
}

// arrived has the only pod of a gang reach its node.
func arrived(t *testing.T) (*gang, *corev1.Pod) {
	t.Helper()
	g := newGang(t, 1)
	if status, _ := g.cycle(0); !status.IsSuccess() {
		t.Fatal(status)
	}
	return g, g.pods[0]
}

// TestNoPodIsBoundWithoutItsLease has the API server answer in every way when a pod's Lease is written, and the pod be
// tried again when all is well. However it went there is one Lease then, which is the pod's.
func TestNoPodIsBoundWithoutItsLease(t *testing.T) {
	stored := func(change func(*rqv1.Lease)) func(g *gang) {
		return func(g *gang) {
			lease, err := g.book.NewLease("run-0", noon.Add(-time.Minute))
			if err == nil {
				change(lease)
				err = g.ledger.Create(g.t.Context(), lease)
			}
			if err != nil {
				g.t.Fatal(err)
			}
		}
	}
	for name, test := range map[string]struct {
		before func(g *gang)
		answer map[string]error
		stored bool
		says   string // why it is not bound; empty, where it is
		stays  bool   // and is so the next time too
		node   string // where it is bound in the end; n0, if empty
	}{
		"it is written":              {},
		"it is not taken":            {answer: map[string]error{"create": forbidden}, says: "the policy says no"},
		"its namespace goes":         {answer: map[string]error{"create": notFound}, says: "is not written"},
		"this process leads no more": {answer: map[string]error{"create": fence.ErrNotLeading}, says: "does not lead"},
		"there is no answer": {answer: map[string]error{"create": context.DeadlineExceeded},
			says: "deadline exceeded"},
		"the answer is lost":           {answer: map[string]error{"create": internal}, stored: true, says: "etcd is away"},
		"a predecessor has written it": {before: stored(func(*rqv1.Lease) {})},
		"which cannot be read": {before: stored(func(*rqv1.Lease) {}),
			answer: map[string]error{"get": internal}, says: "reading the pod's Lease"},
		"it was closed already": {before: stored(func(l *rqv1.Lease) { l.Status.Closed = true }),
			says: "is closed", stays: true},
		"it has the name, and is another's": {
			before: stored(func(l *rqv1.Lease) { l.Labels[rqv1.LabelPodUID] = "other" }), says: "is not this pod's",
			stays: true},
		"a predecessor gave it another node": {before: stored(func(l *rqv1.Lease) { l.Spec.Slice.Nodes[0].Name = "n9" }),
			says: "holds GPUs on node n9", node: "n9"},
	} {
		t.Run(name, func(t *testing.T) {
			g, pod := arrived(t)
			if test.before != nil {
				test.before(g)
			}
			g.answer, g.stored = test.answer, test.stored
			status := g.PreBind(t.Context(), nil, pod, "n0")
			g.answer, g.stored = nil, false
			if status.IsSuccess() != (test.says == "") || !strings.Contains(status.Message(), test.says) {
				t.Fatalf("%v, want %q", status, test.says)
			}
			if !status.IsSuccess() {
				g.Unreserve(t.Context(), nil, pod, "n0")
				if node := g.book.Assigned(pod.UID); node == "" {
					t.Error("the pod has lost its node") // the barrier is open
				}
				g.cycle(0)
				status = g.PreBind(t.Context(), nil, pod, g.book.Assigned(pod.UID))
			}
			if status.IsSuccess() == test.stays {
				t.Fatalf("the next time: %v", status)
			}
			if test.stays {
				return
			}
			g.PostBind(t.Context(), nil, pod, "n0")
			lease := g.leaseOf(pod)
			if lease == nil || lease.PodUID() != pod.UID || lease.Node() != stdcmp.Or(test.node, "n0") ||
				lease.Status.Closed {
				t.Fatalf("stored is %v", lease)
			}
			got := []any{lease.Spec.Owner, lease.Spec.Payer.Budget, lease.Spec.PaidByEnvelope, lease.Spec.Slice.Role,
				lease.Spec.Slice.Nodes[0].GPUs, g.book.GPUsByRole()[rqv1.RoleActive], len(g.turnstile.starts)}
			want := []any{rqv1.Owner("org"), "b", "e", rqv1.RoleActive, int32(8), 8, 0}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestALeaseWhosePodIsGone has a pod deleted while nobody knows whether its Lease was written. What was written is
// known in the end, and what was not holds nothing.
func TestALeaseWhosePodIsGone(t *testing.T) {
	for name, test := range map[string]struct {
		stored bool
		goes   time.Duration // from the attempt to bind it until the pod is deleted
		answer []error       // when the API server is asked, again and again
		holds  int           // GPUs in the end
	}{
		"it was":                                    {stored: true, answer: []error{nil}, holds: 8},
		"it was not":                                {answer: []error{nil}},
		"it was, as is told in the end":             {stored: true, answer: []error{internal, forbidden, nil}, holds: 8},
		"it was, and the pod stays for a while":     {stored: true, goes: time.Minute, answer: []error{nil}, holds: 8},
		"it was not, and the pod stays for a while": {goes: time.Minute, answer: []error{nil}},
	} {
		t.Run(name, func(t *testing.T) {
			g, pod := arrived(t)
			g.answer, g.stored = map[string]error{"create": internal}, test.stored
			if status := g.PreBind(t.Context(), nil, pod, "n0"); status.IsSuccess() {
				t.Fatal("bound without a Lease")
			}
			g.Unreserve(t.Context(), nil, pod, "n0")
			open := func() bool {
				open, _ := g.book.Unsettled(pod.UID)
				return open
			}
			rest := func() {
				for !g.clock.HasWaiters() {
					runtime.Gosched()
				}
			}
			for range int(test.goes / (5 * time.Second)) {
				rest()
				g.clock.Step(5 * time.Second)
			}
			rest()
			g.book.DeleteMember(pod)
			for i, answer := range test.answer {
				if !open() {
					t.Fatalf("settled before answer %d", i)
				}
				rest()
				g.answer, g.stored = map[string]error{"get": answer}, false
				g.clock.Step(5 * time.Second)
			}
			for open() {
				runtime.Gosched()
			}
			if holds := g.book.GPUsByRole()[rqv1.RoleActive]; holds != test.holds {
				t.Errorf("%d GPUs are held, want %d", holds, test.holds)
			}
		})
	}
}

// TestALeaseThatIsBeingWrittenIsNotGivenUp has a pod be deleted during an attempt to bind it, after one whose answer
// was lost: what is found out about that one says nothing of this one.
func TestALeaseThatIsBeingWrittenIsNotGivenUp(t *testing.T) {
	g, pod := arrived(t)
	g.answer = map[string]error{"create": internal}
	g.PreBind(t.Context(), nil, pod, "n0")
	g.Unreserve(t.Context(), nil, pod, "n0")
	g.answer = nil
	g.cycle(0)
	begun, goOn, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	quick := g.ledger
	g.ledger = interceptor.NewClient(quick.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, _ client.WithWatch, o client.Object, options ...client.CreateOption) error {
			close(begun)
			<-goOn
			return quick.Create(ctx, o, options...)
		}})
	go func() {
		defer close(over)
		g.PreBind(t.Context(), nil, pod, "n0")
	}()
	<-begun
	g.book.DeleteMember(pod)
	open := func() bool {
		open, _ := g.book.Unsettled(pod.UID)
		return open
	}
	for range 3 {
		for open() && !g.clock.HasWaiters() {
			runtime.Gosched()
		}
		g.clock.Step(5 * time.Second)
	}
	if !open() {
		t.Error("others may have the GPUs of a Lease that is about to be written")
	}
	close(goOn)
	<-over
	if holds := g.book.GPUsByRole()[rqv1.RoleActive]; holds != 8 {
		t.Errorf("%d GPUs are held in the end", holds)
	}
}

// TestALeaseThatIsRefusedAfterItWasWritten has the API server refuse, as where the namespace is being deleted by then,
// what it took at an attempt before whose answer was lost.
func TestALeaseThatIsRefusedAfterItWasWritten(t *testing.T) {
	for _, stored := range []bool{false, true} {
		g, pod := arrived(t)
		for _, answer := range []error{internal, forbidden} {
			g.answer, g.stored = map[string]error{"create": answer}, stored && answer == internal
			if status := g.PreBind(t.Context(), nil, pod, "n0"); status.IsSuccess() {
				t.Fatal("bound without a Lease")
			}
			g.Unreserve(t.Context(), nil, pod, "n0")
			g.cycle(0)
		}
		want := 0
		if stored {
			want = 8
		}
		if open, _ := g.book.Unsettled(pod.UID); open || g.book.GPUsByRole()[rqv1.RoleActive] != want {
			t.Errorf("written: %v; open: %v, %d GPUs are held", stored, open, g.book.GPUsByRole()[rqv1.RoleActive])
		}
	}
}

// TestOneLooksForALeaseAtATime, however often nobody knows whether it was written.
func TestOneLooksForALeaseAtATime(t *testing.T) {
	g, pod := arrived(t)
	g.answer = map[string]error{"create": internal}
	for range 20 {
		if status := g.PreBind(t.Context(), nil, pod, "n0"); status.IsSuccess() {
			t.Fatal("bound without a Lease")
		}
		g.Unreserve(t.Context(), nil, pod, "n0")
		for !g.clock.HasWaiters() {
			runtime.Gosched()
		}
		g.clock.Step(5 * time.Second)
		g.cycle(0)
	}
	for !g.clock.HasWaiters() {
		runtime.Gosched()
	}
	if looking := g.clock.Waiters(); looking > 1 {
		t.Errorf("%d look for it", looking)
	}
}

// TestAFewPodsAreWrittenForAtATime has the API server take its time over the Leases of as many pods as it is asked for
// at once. Another waits, or gives up. It goes on as soon as one of them is written, whatever that pod waits for before
// it is bound, and a pod that replaces a lost rank waits for none of them.
func TestAFewPodsAreWrittenForAtATime(t *testing.T) {
	g := newGang(t, 4)
	g.turnstile = newTurnstile(2, 1)
	g.pods[3].Annotations = map[string]string{rqv1.AnnotationReplaces: rank.Replacement{Lost: "l"}.Annotation()}
	for i := range g.pods {
		g.cycle(i)
	}
	begun, goOn := make(chan struct{}, len(g.pods)), make(chan struct{})
	quick := g.ledger
	g.ledger = interceptor.NewClient(quick.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, _ client.WithWatch, o client.Object, options ...client.CreateOption) error {
			begun <- struct{}{}
			<-goOn
			return quick.Create(ctx, o, options...)
		}})
	over := make(chan *fwk.Status, len(g.pods))
	write := func(pod *corev1.Pod) {
		go func() { over <- g.PreBind(t.Context(), nil, pod, g.book.Assigned(pod.UID)) }()
	}
	for _, pod := range g.pods[:2] {
		write(pod)
		<-begun
	}
	third := g.pods[2]
	ended, end := context.WithCancelCause(t.Context())
	end(errors.New("the pod is gone"))
	status := g.PreBind(ended, nil, third, g.book.Assigned(third.UID))
	if !strings.Contains(status.Message(), "the pod is gone") {
		t.Errorf("the third, which gives up: %v", status)
	}
	write(third)
	write(g.pods[3])
	<-begun // the replacement's
	select {
	case <-begun:
		t.Error("the third is written for beside the others")
	default:
	}
	for range g.pods {
		goOn <- struct{}{}
		if status := <-over; !status.IsSuccess() {
			t.Error(status)
		}
	}
}

// TestOnlyPodsOfRunsAreBoundByLease: others have nothing to do before they are bound.
func TestOnlyPodsOfRunsAreBoundByLease(t *testing.T) {
	g, pod := arrived(t)
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "web"}}
	if _, status := g.PreBindPreFlight(t.Context(), nil, other, "n0"); !status.IsSkip() {
		t.Errorf("another's: %v", status)
	}
	if result, status := g.PreBindPreFlight(t.Context(), nil, pod, "n0"); !status.IsSuccess() || !result.AllowParallel {
		t.Errorf("ours: %v, %v", result, status)
	}
	if status := g.PreBind(t.Context(), nil, other, "n0"); !status.IsSuccess() || g.leaseOf(other) != nil {
		t.Errorf("another's is bound with a Lease: %v", status)
	}
	g.PostBind(t.Context(), nil, other, "n0")
	g.Unreserve(t.Context(), nil, other, "n0")
	if status, _ := g.Permit(t.Context(), nil, other, "n0"); !status.IsSuccess() {
		t.Errorf("another's at the barrier: %v", status)
	}
}
