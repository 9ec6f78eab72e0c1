package book

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// LeaseLost records that a Lease is gone with its namespace. What its pod holds is paid for until that is gone too: the namespace
// controller deletes Leases at once, and gives pods their grace. What is spent by then stays counted, in the records of the
// Budgets that it returns.
func (b *Book) LeaseLost(name types.NamespacedName, now time.Time) []string {
	b.mu.Lock()
	defer b.unlock()
	l := b.leases[name]
	if l != nil && b.held[l.pod] != nil && b.held[l.pod].bound {
		l.lost = true
		return nil
	}
	b.closeLease(name, now)
	return b.accounts.Forget(name.String())
}

// lookUpLost has a Lease looked up again that was gone before its pod, which has ended now.
func (b *Book) lookUpLost(pod *corev1.Pod) {
	name := leaseName(pod)
	if l := b.leases[name]; l != nil && l.lost {
		l.lost = false
		b.actions.Lookup = append(b.actions.Lookup, name)
		b.signal()
	}
}
