package plugins

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// bindings is how many writes for pods of Runs that start are under way at a time. A barrier that opens lets a thousand
// pods go at once, and the API server does more per second when it is not asked for all of them in the same instant.
// replacing is how many are for pods that replace lost ranks, which wait for nobody's start.
const bindings, replacing = 32, 8

// turnstile lets a bounded number of writes through to the API server.
type turnstile struct {
	starts, replacements chan struct{}
	within               sync.Map // the UIDs of pods for which a write is under way
}

func newTurnstile(starts, replacements int) *turnstile {
	return &turnstile{starts: make(chan struct{}, starts), replacements: make(chan struct{}, replacements)}
}

// let waits for a slot, writes, and gives the slot back: what a pod waits for besides, such as a volume, holds nobody
// else up.
func (t *turnstile) let(ctx context.Context, pod *corev1.Pod, write func() error) error {
	slots := t.starts
	if _, replaces := rank.ReplacementOf(pod); replaces {
		slots = t.replacements
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case slots <- struct{}{}:
	}
	t.within.Store(pod.UID, true)
	defer func() {
		t.within.Delete(pod.UID)
		<-slots
	}()
	return write()
}

// has reports whether a write for a pod is under way.
func (t *turnstile) has(pod types.UID) bool {
	_, within := t.within.Load(pod)
	return within
}
