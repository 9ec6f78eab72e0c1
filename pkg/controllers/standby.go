package controllers

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// changed has a Run looked at soon. A process that does not decide yet keeps no list: it stands by for as long as another leads,
// while Runs come and go.
func (c *Controllers) changed(run types.NamespacedName) {
	if c.decides.Load() {
		c.runs.AddAfter(run, settle)
	}
}

// begin has every Run looked at, also those of which only pods, Leases or Reservations are left: this process decides from now on.
func (c *Controllers) begin() {
	c.decides.Store(true)
	names := c.watches.runs.GetStore().ListKeys()
	for _, of := range []cache.SharedIndexInformer{c.watches.pods, c.watches.leases, c.watches.reservations} {
		names = append(names, of.GetIndexer().ListIndexFuncValues(byRun)...)
	}
	for _, key := range names {
		namespace, name, _ := cache.SplitMetaNamespaceKey(key) // they are not malformed
		c.changed(types.NamespacedName{Namespace: namespace, Name: name})
	}
}
