package book

import "sync"

// guard is the book's lock. Whatever was improved while it was held wakes those that wait for it, once, as it is given
// back.
type guard struct {
	sync.Mutex
	onUnlock func()
	// edits counts how often the book may have been changed, up to swept those that the last sweep has seen; onChange is
	// called at the first that it has not.
	edits, swept int64
	onChange     func()
	// watch is called as the lock is taken, and what it returns, end, once it has been given back.
	watch func() (end func())
	end   func()
}

// newGuard returns a lock whose holds nobody measures.
func newGuard(onUnlock func()) *guard {
	unmeasured := func() {}
	return &guard{onUnlock: onUnlock, end: unmeasured, watch: func() func() { return unmeasured }}
}

// Lock begins a change to the book, or a look at it.
func (g *guard) Lock() {
	g.Mutex.Lock()
	g.end = g.watch()
}

// Unlock ends a change to the book.
func (g *guard) Unlock() {
	g.onUnlock()
	if g.edits == g.swept {
		g.onChange()
	}
	g.edits++
	g.unlockUnchanged()
}

// unlockUnchanged ends a look at the book that has changed nothing.
func (g *guard) unlockUnchanged() {
	end := g.end
	g.Mutex.Unlock()
	end()
}

// unlockSwept ends a sweep: until something else changes, there is nothing to be found by another.
func (g *guard) unlockSwept() {
	g.onUnlock()
	g.edits++
	g.swept = g.edits
	g.unlockUnchanged()
}
