package budget

// settling is how far the settlement of one Budget has come.
type settling struct {
	// through is the latest end that a stored record may speak of.
	through int64
	// waiting are the settled Leases whose objects may still be there, with their ends: they do not count once more.
	waiting map[string]int64
	// early are settled Leases of namespaces that are being deleted, by name: the record has their names. Going are Leases
	// that are to be settled so next, and after those all that are closed in some namespaces.
	early   map[string]bool
	going   []goingLease
	leaving []goingNamespace
	// late are Leases that were settled as soon as they were recorded as closed, and stale says that the stored record is
	// to be written again, since it speaks of more than what is in it.
	late  []string
	stale bool
}

func (a *Accounts) settlingOf(budget string) *settling {
	s := a.settlings[budget]
	if s == nil {
		s = &settling{waiting: map[string]int64{}, early: map[string]bool{}}
		a.settlings[budget] = s
	}
	return s
}

// Complete tells that every Lease that is in a stored record and still has an object has been recorded. From then on,
// whatever is recorded as closed is new, and counts, whenever it says that it ended: the clock may have been set back.
func (a *Accounts) Complete() { a.complete = true }

// Dropped tells that the object of a settled Lease is gone.
func (a *Accounts) Dropped(budget, lease string) {
	s := a.settlingOf(budget)
	delete(s.waiting, lease)
	delete(s.early, lease)
}

// isSettled reports whether a Lease that is recorded as closed is in its Budget's record already.
func (s *settling) isSettled(lease string, ended int64, complete bool) bool {
	if _, waits := s.waiting[lease]; waits || s.early[lease] {
		return true
	}
	if complete || ended > s.through {
		return false
	}
	s.waiting[lease] = ended
	return true
}

// isLate reports whether a restart would take a Lease that ends now for one that is in the record, as long as there are
// others in it that still have objects. When there are none the record need not speak of any.
func (s *settling) isLate(ended int64) bool {
	if ended > s.through {
		return false
	}
	s.stale = true
	if len(s.waiting) == 0 {
		s.through = 0
		return false
	}
	return true
}

// settled notes that a Lease is in the record.
func (s *settling) settled(lease string, ended int64) {
	s.waiting[lease] = ended
	s.through = max(s.through, ended)
}

// latest returns the latest end of the Leases in the record whose objects may still be there; 0 when there are none.
func (s *settling) latest() int64 {
	var out int64
	for _, ended := range s.waiting {
		out = max(out, ended)
	}
	return out
}
