package book

import (
	"slices"

	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// stillLeased refuses a gang while the Lease is open of a lost rank, of the spare whose place one takes, or of an old
// pod whose room it keeps.
func (s *seating) stillLeased(g *gang) *plan.Refusal {
	for i := range g.vacant {
		if h := s.held[g.vacant[i].pod]; h != nil && h.leased && !h.outlived() && g.vacant[i].index != anyRank {
			return g.notYet("the Lease of a lost pod is still open; it is closed first")
		}
	}
	for i := range g.requeue.places {
		if h := s.held[g.requeue.places[i].pod]; h != nil && (h.leased || h.bound) && !h.outlived() {
			return g.notYet("the Lease of an old pod is still open; it is closed first")
		}
	}
	if g.late() && s.endedUnclosed(g) {
		return g.notYet("the Lease of a pod that has ended is still open; it is closed first")
	}
	return nil
}

// endedUnclosed reports whether a pod waits for the rank of one that has ended, whose Lease is open: until that is
// closed it has the rank's room and money.
func (s *seating) endedUnclosed(g *gang) bool {
	return slices.ContainsFunc(g.active.between(0, g.active.size), func(m *member) bool {
		if m == nil || m.standIn || m.stage != unplaced {
			return false
		}
		last := g.latest[m.part]
		if last == nil || last.reason != "" || last.pod == m.pod.UID {
			return false
		}
		was, h := s.roster.members[last.pod], s.held[last.pod]
		return (was == nil || was.stage == finished) && h != nil && h.leased && !h.outlived()
	})
}
