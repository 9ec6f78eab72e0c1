package book

import "time"

// shieldFrom returns until when a Run may not be cut for another: until its shield is over and, if the other has been cut for
// it, as long again from when that was decided, whether or not it has started anew since. No longer than that: who loses
// once is to have a date like anybody else (R17, R22).
func (b *Book) shieldFrom(g, other *gang, now time.Time) time.Time {
	until := b.shield(g, now)
	if other.run == nil {
		return until
	}
	if at := b.reservations.lastCut(g.run.UID, other.run.UID); !at.IsZero() {
		until = latest(until, at.Add(b.shieldOf(g.run)))
	}
	return until
}
