package controllers

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// gone are the pods whose deletion the API server has told, by Run. That a cache lacks a pod proves nothing; that its end was
// told does, and saves asking while a rank waits for its replacement. A Run that has no open Leases needs none of it.
type gone struct {
	mu   sync.Mutex
	pods map[types.NamespacedName]map[types.UID]bool
}

// follow notes what an informer of pods is told. What it finds out from a list after a watch was broken off is left out.
func (g *gone) follow(pods cache.SharedInformer) error {
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(o any) {
		if pod, told := o.(*corev1.Pod); told {
			g.add(runOfPod(pod), pod.UID)
		}
	}})
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	return nil
}

func (g *gone) add(run types.NamespacedName, pod types.UID) {
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
func (g *gone) has(run types.NamespacedName, pod types.UID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pods[run][pod]
}

// forget drops what is known of a Run's pods.
func (g *gone) forget(run types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.pods, run)
}
