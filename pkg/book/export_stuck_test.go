package book

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// StuckOn lists the nodes of pods that should be long gone.
func (b *Book) StuckOn(now time.Time) (nodes []string) {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	for _, s := range b.departures.stuckNow(now) {
		nodes = append(nodes, s.Node)
	}
	return nodes
}

// HeldForAbsent returns how many places are held for a Run that is to start, for pods that have not been made.
func (b *Book) HeldForAbsent(run types.UID) (held int) {
	if g := b.roster.gangs[run]; g != nil && g.mayRest() && !g.activates() {
		for _, m := range g.active.members { // spares are made by whoever schedules
			if m != nil && m.standIn {
				held++
			}
		}
	}
	return held
}
