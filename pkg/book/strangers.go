package book

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/group"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// strangers are the pods that no Run made and that have no rank in one: what is known of those that are in groups, or
// ask for GPUs (R40). The scheduling queue asks about them under its own lock.
type strangers struct {
	mu    sync.RWMutex
	known map[types.UID]Stranger
}

// Stranger is what becomes of a pod that no Run made.
type Stranger struct {
	// Free says that it is placed as any scheduler places it.
	Free bool
	// Refused is what it is told that nobody places, and Reason in a word why; empty for one that is only held back.
	Refused, Reason string
}

// Decide says what becomes of pods that no Run made, and has the queue try those that it may try now.
func (b *Book) Decide(pods []*corev1.Pod, as Stranger) {
	b.strangers.mu.Lock()
	var changed []*corev1.Pod
	for _, pod := range pods {
		if was, known := b.strangers.known[pod.UID]; !known || was != as {
			b.strangers.known[pod.UID] = as
			changed = append(changed, pod)
		}
	}
	b.strangers.mu.Unlock()
	if len(changed) == 0 || !as.Free {
		return
	}
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	b.mail.activate(changed...)
}

// Forget drops what was said of a pod that is gone, or has a rank.
func (b *Book) Forget(pod types.UID) {
	b.strangers.mu.Lock()
	defer b.strangers.mu.Unlock()
	delete(b.strangers.known, pod)
}

func (s *strangers) of(pod types.UID) (Stranger, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	of, known := s.known[pod]
	return of, known
}

// RefusedFor returns in a word and in full why a pod that no Run made is not placed; empty for one that is not refused.
func (b *Book) RefusedFor(pod types.UID) (reason, why string) {
	of, _ := b.strangers.of(pod)
	return of.Reason, of.Refused
}

// HoldsBack says why a pod that no Run made is kept out of the scheduling queue: it is in a group, or asks for GPUs,
// and its group is not taken in yet. One that is refused is told by the controllers: a cycle would have nodes added.
func (b *Book) HoldsBack(pod *corev1.Pod) string {
	if b.nodes.podGPUs(pod) == 0 && group.Of(pod).Alone() {
		return ""
	}
	switch of, known := b.strangers.of(pod.UID); {
	case !known:
		return "waiting until the scheduler has read the pod's group"
	case of.Free:
		return ""
	case of.Refused != "":
		return of.Refused
	}
	return "waiting for the pod's group to start"
}

// Foreign says why a pod that has no rank in a Run is not placed: it asks for GPUs, and those are given to nobody who
// has no payer (R41), or for some that nobody counts. It returns nil for one that asks for none, which is placed
// as any scheduler places it.
func (b *Book) Foreign(pod *corev1.Pod) *plan.Refusal {
	gpus := b.nodes.podGPUs(pod)
	of, _ := b.strangers.of(pod.UID)
	message := of.Refused
	if gpus == 0 && message == "" {
		message = b.nodes.unserved(pod)
	}
	if gpus == 0 && message == "" {
		return nil
	}
	if message == "" {
		message = fmt.Sprintf("nobody pays for the %d %s that the pod requests in spec.containers[].resources: name the "+
			"owner who pays in annotation %s, or request no GPUs", gpus, b.nodes.asksFor(pod), rqv1.AnnotationOwner)
	}
	return &plan.Refusal{Reason: plan.Unsupported, WantedGPUs: gpus, ShortGPUs: gpus, Message: message}
}

// Flavors returns the types of GPU that people may mean, in order: those of nodes which are not left out, or are so
// only until their devices are there.
func (b *Book) Flavors() []string {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	return b.nodes.types()
}
