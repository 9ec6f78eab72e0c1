package controllers

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/reconcile"
)

// longestUntold is how long it is tried to tell a pod that it ends, before it is deleted all the same.
const longestUntold = 10 * time.Second

// untold are the pods that could not be told yet that they end, and since when: what stands in the way may never pass,
// such as a webhook that takes too long for this pod.
type untold struct {
	mu    sync.Mutex
	since map[types.UID]time.Time
}

// waits reports whether an error of a write before the end of a pod is waited for to pass.
func (u *untold) waits(pod types.UID, err error, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	since, known := u.since[pod]
	switch {
	case err == nil, reconcile.Refused(err):
		return false
	case !known:
		if u.since == nil {
			u.since = map[types.UID]time.Time{}
		}
		u.since[pod] = now
		return true
	}
	return now.Sub(since) < longestUntold
}

// forget forgets a pod that is told to go.
func (u *untold) forget(pod types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.since, pod)
}
