package book

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/lane"
)

// mailbox is where the book leaves what it asks of the scheduling queue, of those who carry decisions out and of those
// who ask other scheduling rules: it calls nobody.
type mailbox struct {
	queue       *Outlet[ForQueue]
	controllers *Outlet[ForControllers]
	// inquiries are the Runs whose ranks are to move: other scheduling rules are to be asked about their places.
	inquiries *Outlet[[]types.UID]
}

// ForQueue is what events and decisions ask of the scheduling queue.
type ForQueue struct {
	// Activate lists pods that may now be schedulable.
	Activate []*corev1.Pod
	// Reject lists pods that wait in Permit for a gang that is not going to start.
	Reject []types.UID
}

// ForControllers is what events and decisions ask of those who carry decisions out.
type ForControllers struct {
	// Reconcile lists Runs whose refusal, or whose overdraft, has changed.
	Reconcile []types.NamespacedName
	// Work is what is to be done for each of them; of several kinds, that which goes first.
	Work map[types.NamespacedName]lane.Work
	// Lookup lists Leases that are no longer among the open ones, and of which it is not known when they ended.
	Lookup []types.NamespacedName
}

// Outlet is where the book leaves what it asks of somebody, who takes it from there on their own: the book calls
// nobody.
type Outlet[T any] struct {
	mu     *guard // the book's
	asked  T
	filled chan struct{}
}

func newOutlet[T any](mu *guard) *Outlet[T] {
	return &Outlet[T]{mu: mu, filled: make(chan struct{}, 1)}
}

// Filled is signalled when there is something to take.
func (o *Outlet[T]) Filled() <-chan struct{} { return o.filled }

// Take returns what has been asked for since the last call.
func (o *Outlet[T]) Take() T {
	o.mu.Lock()
	defer o.mu.unlockUnchanged()
	var none T
	asked := o.asked
	o.asked = none
	return asked
}

// signal says that something has been added. The book is locked.
func (o *Outlet[T]) signal() {
	select {
	case o.filled <- struct{}{}:
	default:
	}
}

func (out *mailbox) activate(pods ...*corev1.Pod) {
	out.queue.asked.Activate = append(out.queue.asked.Activate, pods...)
	out.queue.signal()
}

func (out *mailbox) reject(pods ...types.UID) {
	out.queue.asked.Reject = append(out.queue.asked.Reject, pods...)
	out.queue.signal()
}

func (out *mailbox) ask(run types.UID) {
	out.inquiries.asked = append(out.inquiries.asked, run)
	out.inquiries.signal()
}

func (out *mailbox) reconcile(run types.NamespacedName, work lane.Work) {
	asked := &out.controllers.asked
	asked.Reconcile = append(asked.Reconcile, run)
	if asked.Work == nil {
		asked.Work = map[types.NamespacedName]lane.Work{}
	}
	asked.Work[run] = max(asked.Work[run], work)
	out.controllers.signal()
}

func (out *mailbox) lookUp(name types.NamespacedName) {
	out.controllers.asked.Lookup = append(out.controllers.asked.Lookup, name)
	out.controllers.signal()
}
