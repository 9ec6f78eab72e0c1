package book

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// stage is how far a pod has come.
type stage int

const (
	unplaced stage = iota
	assigned       // has a node and a payer
	reserved       // waits at the barrier, or has passed it
	writing        // its Lease may or may not be in the ledger by now
	leased         // its Lease is open in the ledger
	bound          // runs on its node
	finished       // succeeded or failed
)

// member is one pod of a gang.
type member struct {
	gang  *gang
	pod   *corev1.Pod
	part  rank.Part
	stage stage
	node  string
	payer payer
	// leaving says that the pod has been told to go.
	leaving bool
	// awaited is the gang that the pod is cut for; nil when it is not.
	awaited *gang
	// unseen counts how often the scheduler's cache has lacked the node that the pod was given.
	unseen int
}

// placed reports whether the member has a node where it holds GPUs, or is going to.
func (m *member) placed() bool { return m.stage > unplaced && m.stage < finished }

// extra reports whether the member is a spare of a Run that has started, or a shard. It is placed by itself, when there is
// room: the Run goes on without it.
func (m *member) extra() bool { return m.part.Spare && m.gang.started() || m.gang.opportunistic() }

// joins reports whether the member belongs to the cohort that its gang grows by (R23).
func (m *member) joins() bool {
	return m.gang.growing() > 0 && !m.gang.settled().Has(m.part)
}

// group returns the member's group.
func (m *member) group() int { return m.gang.demand.Group(m.part) }

// surplus reports whether the member is beyond the width that its gang has at the moment: it takes part in nothing.
func (m *member) surplus() bool {
	return m.gang.shape == nil && m.part.Index >= m.gang.squad(m.part).size
}

// squad is the pods of a gang that have one role.
type squad struct {
	// members by index; nil where the pod does not exist. present counts those that do, and no member below lowest is
	// unplaced.
	members         []*member
	present, lowest int
	// size is how many members take part, at the width that the gang has at the moment. The other counters leave those
	// with a higher index out.
	size int
	// within counts the members that exist, and leaving those that have been told to go and are not gone: the gang waits
	// for their replacements.
	within, leaving int
	// assigned counts members with a node, reserved those that have reached the barrier.
	assigned, reserved int
}

// between returns the members with an index from first to before end, as far as there are any.
func (s *squad) between(first, end int) []*member {
	end = min(end, len(s.members))
	return s.members[min(first, end):end]
}

// whole reports whether every member that takes part exists.
func (s *squad) whole() bool { return s.within == s.size && s.leaving == 0 }

// resize changes how many members take part.
func (s *squad) resize(size int) {
	s.size, s.within, s.leaving, s.assigned, s.reserved = size, 0, 0, 0, 0
	for _, m := range s.members {
		if m != nil {
			s.count(m, +1)
		}
	}
}

// first returns the unplaced member of lowest index that takes part; nil when all are placed.
func (s *squad) first() *member {
	for ; s.lowest < min(s.size, len(s.members)); s.lowest++ {
		if m := s.members[s.lowest]; m != nil && m.stage == unplaced && !m.leaving {
			return m
		}
	}
	return nil
}

func (s *squad) count(m *member, by int) {
	if m.part.Index >= s.size {
		return
	}
	s.within += by
	if m.leaving {
		s.leaving += by
	}
	if m.stage >= assigned {
		s.assigned += by
	}
	if m.stage >= reserved {
		s.reserved += by
	}
}
