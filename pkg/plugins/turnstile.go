package plugins

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// bindings is how many pods of Runs are being bound at a time. A barrier that opens lets a thousand pods go at once,
// and the API server does more per second when it is not asked for all of them in the same instant.
const bindings = 32

// turnstile lets a bounded number of pods through to the API server.
type turnstile struct {
	slots  chan struct{}
	within sync.Map // pods, by UID
}

func newTurnstile(slots int) *turnstile { return &turnstile{slots: make(chan struct{}, slots)} }

// enter waits for a slot; leave, which is harmless for a pod that has none, gives it back.
func (t *turnstile) enter(ctx context.Context, pod types.UID) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case t.slots <- struct{}{}:
		t.within.Store(pod, true)
		return nil
	}
}

// has reports whether a pod is let through, or was and has not left.
func (t *turnstile) has(pod types.UID) bool {
	_, within := t.within.Load(pod)
	return within
}

func (t *turnstile) leave(pod types.UID) {
	if _, had := t.within.LoadAndDelete(pod); had {
		<-t.slots
	}
}
