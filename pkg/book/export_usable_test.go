package book

// Plans returns how often anything has been planned.
func (b *Book) Plans() int64 {
	b.mu.Lock()
	defer b.mu.unlockUnchanged()
	return b.waiting.plans
}

// WakeRoom has GPUs of a flavor perhaps be free that were not, and returns how many Runs are woken since.
func (b *Book) WakeRoom(flavor string) (woken int) {
	b.mu.Lock()
	b.waiting.wakeRoom(flavor)
	b.mu.Unlock()
	for _, g := range b.waiting.roused {
		if g.woken {
			woken++
		}
	}
	return woken
}
