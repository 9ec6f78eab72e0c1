package book

import (
	"sync"
)

// guard is the book's lock. Whatever was improved while it was held wakes those that wait for it, once, as it is given back.
type guard struct {
	sync.Mutex
	onUnlock func()
}

// Unlock ends a look at the book, or a change to it.
func (g *guard) Unlock() {
	g.onUnlock()
	g.Mutex.Unlock()
}
