package book

import (
	"sync"
)

// guard is the book's lock. Whatever was improved while it was held wakes those that wait for it, once, as it is given
// back.
type guard struct {
	sync.Mutex
	onUnlock func()
	// edits counts how often the book may have been changed, up to swept those that the last sweep has seen; onChange is
	// called at the first that it has not.
	edits, swept int64
	onChange     func()
}

// Unlock ends a change to the book.
func (g *guard) Unlock() {
	g.onUnlock()
	if g.edits == g.swept {
		g.onChange()
	}
	g.edits++
	g.Mutex.Unlock()
}

// unlockUnchanged ends a look at the book that has changed nothing.
func (g *guard) unlockUnchanged() { g.Mutex.Unlock() }

// unlockSwept ends a sweep: until something else changes, there is nothing to be found by another.
func (g *guard) unlockSwept() {
	g.onUnlock()
	g.edits++
	g.swept = g.edits
	g.Mutex.Unlock()
}
