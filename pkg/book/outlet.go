package book

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

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
	// Lookup lists Leases that are no longer among the open ones, and of which it is not known when they ended.
	Lookup []types.NamespacedName
}

// Outlet is where the book leaves what it asks of somebody, who takes it from there on their own: the book calls nobody.
type Outlet[T any] struct {
	mu     *sync.Mutex // the book's
	asked  T
	filled chan struct{}
}

func newOutlet[T any](mu *sync.Mutex) *Outlet[T] {
	return &Outlet[T]{mu: mu, filled: make(chan struct{}, 1)}
}

// Filled is signalled when there is something to take.
func (o *Outlet[T]) Filled() <-chan struct{} { return o.filled }

// Take returns what has been asked for since the last call.
func (o *Outlet[T]) Take() T {
	o.mu.Lock()
	defer o.mu.Unlock()
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

// Queue is the outlet for the scheduling queue.
func (b *Book) Queue() *Outlet[ForQueue] { return b.queue }

// Controllers is the outlet for those who carry decisions out.
func (b *Book) Controllers() *Outlet[ForControllers] { return b.controllers }

func (b *Book) activate(pods ...*corev1.Pod) {
	b.queue.asked.Activate = append(b.queue.asked.Activate, pods...)
	b.queue.signal()
}

func (b *Book) reject(pods ...types.UID) {
	b.queue.asked.Reject = append(b.queue.asked.Reject, pods...)
	b.queue.signal()
}

func (b *Book) reconcile(run types.NamespacedName) {
	b.controllers.asked.Reconcile = append(b.controllers.asked.Reconcile, run)
	b.controllers.signal()
}

func (b *Book) lookUp(lease types.NamespacedName) {
	b.controllers.asked.Lookup = append(b.controllers.asked.Lookup, lease)
	b.controllers.signal()
}
