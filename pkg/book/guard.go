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
	// hold is called as the lock is taken, and what it returns, over, once it has been given back.
	hold func() (over func())
	over func()
}

// newGuard returns a lock whose holds nobody measures.
func newGuard(onUnlock func()) *guard {
	unmeasured := func() {}
	return &guard{onUnlock: onUnlock, over: unmeasured, hold: func() func() { return unmeasured }}
}

// Lock begins a change to the book, or a look at it.
func (g *guard) Lock() {
	g.Mutex.Lock()
	g.over = g.hold()
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
	over := g.over
	g.Mutex.Unlock()
	over()
}

// unlockSwept ends a sweep: until something else changes, there is nothing to be found by another.
func (g *guard) unlockSwept() {
	g.onUnlock()
	g.edits++
	g.swept = g.edits
	g.unlockUnchanged()
}

// WatchHolds has a function be called whenever the book's lock is taken, and what that returns once it has been given
// back: those who measure for how long others wait have a clock.
func (b *Book) WatchHolds(hold func() (over func())) {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	b.mu.hold = hold
}
