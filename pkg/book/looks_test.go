package book

// Looks counts how often gangs that wait have been looked at.
func (b *Book) Looks() int64 {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	return b.waiting.looks
}
