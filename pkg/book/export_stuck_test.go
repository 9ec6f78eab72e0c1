package book

import "time"

// StuckOn lists the nodes of pods that should be long gone.
func (b *Book) StuckOn(now time.Time) (nodes []string) {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	for _, s := range b.departures.stuckNow(now) {
		nodes = append(nodes, s.Node)
	}
	return nodes
}
