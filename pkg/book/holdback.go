package book

import (
	"maps"
	"slices"
)

// HoldBack says which nodes show signs of loss and are not taken for lost, since too many do at once (R25); all others are not
// held back any more. What is on them stays there, and nothing else comes.
func (b *Book) HoldBack(nodes map[string]bool) {
	b.mu.Lock()
	defer b.unlock()
	if maps.Equal(nodes, b.heldBack) {
		return
	}
	changed := map[string]bool{}
	for name := range nodes {
		changed[name] = !b.heldBack[name]
	}
	for name := range b.heldBack {
		changed[name] = !nodes[name]
	}
	maps.DeleteFunc(changed, func(_ string, is bool) bool { return !is })
	b.heldBack = maps.Clone(nodes)
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		if node := b.nodes[name]; node != nil {
			b.fleet.SetNode(b.inFleet(node))
			b.wakeNodes(b.flavorOf(node))
		}
	}
	b.reconcileOn(changed)
}
