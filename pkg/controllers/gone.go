package controllers

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// endedPods are the pods whose deletion the API server has told, by Run. That a cache lacks a pod proves nothing; that
// its end was told does, and saves asking while a rank waits for its replacement. A pod whose Lease is not open needs
// none of it.
type endedPods struct {
	mu   sync.Mutex
	pods map[types.NamespacedName]map[types.UID]bool
}

func (g *endedPods) add(run types.NamespacedName, pod types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pods == nil {
		g.pods = map[types.NamespacedName]map[types.UID]bool{}
	}
	if g.pods[run] == nil {
		g.pods[run] = map[types.UID]bool{}
	}
	g.pods[run][pod] = true
}

// has reports whether a pod's end was told.
func (g *endedPods) has(run types.NamespacedName, pod types.UID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pods[run][pod]
}

// keep drops what is known of a Run's pods but for those that some Leases name.
func (g *endedPods) keep(run types.NamespacedName, leases []*rqv1.Lease) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pods[run] == nil {
		return
	}
	open := map[types.UID]bool{}
	for _, l := range leases {
		open[l.PodUID()] = true
	}
	maps.DeleteFunc(g.pods[run], func(pod types.UID, _ bool) bool { return !open[pod] })
	if len(g.pods[run]) == 0 {
		delete(g.pods, run)
	}
}
