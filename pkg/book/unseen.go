package book

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// The book and the scheduler's cache learn of nodes apart, so that a gang may be given one that the cache lacks for a moment.
// Its pods are tried again soon, and less often as time goes by, up to unseenLongest. After unseenTries the node is left alone
// for as long as one that another rule turned down: the gang is not to hold its GPUs in vain.
const (
	unseenSoon    = 100 * time.Millisecond
	unseenLongest = 5 * time.Second
	unseenTries   = 5
)

// Unseen records that the scheduler's cache lacks the node that a pod was given, and returns how soon to try the pod again; 0
// when it is not to be.
func (b *Book) Unseen(pod types.UID, node string) time.Duration {
	b.mu.Lock()
	defer b.unlock()
	m := b.members[pod]
	if m == nil || m.gang.run == nil || m.node != node || m.stage == unplaced || m.stage >= bound {
		return 0
	}
	m.unseen++
	if m.unseen > unseenTries && m.stage == assigned && !m.gang.committed {
		b.turned(m, node, "the scheduler does not see the node")
		return 0
	}
	return min(unseenSoon<<min(m.unseen-1, 10), unseenLongest)
}

// Again has a pod tried again that has a node and is not bound.
func (b *Book) Again(pod types.UID) {
	b.mu.Lock()
	defer b.unlock()
	if m := b.members[pod]; m != nil && m.stage >= assigned && m.stage < bound {
		b.activate(m.pod)
	}
}
