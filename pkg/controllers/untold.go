package controllers

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/reconcile"
)

// longestUntold is how long it is tried to tell a pod that it ends, before it is deleted all the same.
const longestUntold = 10 * time.Second

// anotherEnd is how long nothing has to be tried of a pod for what failed before to be about another end of it.
const anotherEnd = time.Minute

// untold are the pods that could not be told yet that they end, and since when: what stands in the way may never pass,
// such as a webhook that takes too long for this pod.
type untold struct {
	mu   sync.Mutex
	pods map[types.UID]failing
}

// failing is when a write first failed, and when it last did.
type failing struct{ since, last time.Time }

// waits reports whether an error of a write before the end of a pod is waited for to pass.
func (u *untold) waits(pod types.UID, err error, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err == nil || reconcile.Refused(err) {
		return false
	}
	maps.DeleteFunc(u.pods, func(_ types.UID, f failing) bool { return now.Sub(f.last) > anotherEnd })
	f, known := u.pods[pod]
	if !known {
		f.since = now
	}
	if u.pods == nil {
		u.pods = map[types.UID]failing{}
	}
	f.last = now
	u.pods[pod] = f
	return now.Sub(f.since) < longestUntold
}

// forget forgets a pod that is told to go.
func (u *untold) forget(pod types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.pods, pod)
}
