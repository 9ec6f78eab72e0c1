package book

// TakeIn has what Runs give back be waited for no longer than until it is called the second time.
func (b *Book) TakeIn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.handbacks.sweep()
}
