package book

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// vacancy is the room of a pod that is gone, or goes, and that a rank of its gang is to have.
type vacancy struct {
	pod types.UID
	// index of the rank; anyRank for the room of a pod beyond the width, which any rank may take.
	index int
	// node and payer are what the rank gets with the room of a spare, or with its own; empty for other rooms.
	node  string
	payer payer
	// asks says that other scheduling rules are asked about the rank there before its spare gives way.
	asks bool
	// own says that the room is what the rank held itself, until its pod died.
	own bool
	// since is when its Run has it since, as far as anybody knows.
	since time.Time
}

// seat reports whether the room is a spare's, or the rank's own, that one rank takes over as it is.
func (v *vacancy) seat() bool { return v.node != "" }

const anyRank = -1

// roomOf returns what a vacancy keeps on a node; nil where that is nothing, or a spare stands by there that holds it.
func (s *seating) roomOf(v *vacancy) *holding {
	h, m := s.held[v.pod], s.roster.members[v.pod]
	if h == nil || !h.vacant || h.gpus == 0 || m != nil && m.placed() {
		return nil
	}
	return h
}

// keeping is what is kept for a gang that runs, beside what its pods hold: others have all of it when the Run ends.
type keeping struct {
	pod   types.UID // in whose name
	index int       // of the rank whose it is; anyRank for what any rank may have
	// room is nil where it is but the money of a rank, and charge the name of what is charged for it, if anything is.
	room     *holding
	charge   string
	since    time.Time
	borrowed bool
}

// keepings returns what is kept for a gang: for ranks that it has lost, and for those that are to move.
func (s *seating) keepings(g *gang) (out []keeping) {
	for i := range g.vacant {
		v := &g.vacant[i]
		if h := s.roomOf(v); h != nil {
			out = append(out, keeping{pod: v.pod, index: v.index, room: h, charge: s.chargedFor(g, v.pod), since: v.since,
				borrowed: v.payer.others()})
		}
	}
	for _, pod := range g.room.held {
		out = append(out, keeping{pod: pod, index: anyRank, room: s.held[pod], charge: charged(pod)})
	}
	for _, index := range slices.Sorted(maps.Keys(g.aside)) {
		pod := moneyOf(g, index)
		out = append(out, keeping{pod: pod, index: index, charge: charged(pod)})
	}
	return out
}

// chargedFor returns the name of the charge for the room of a pod that is gone: its Lease's, until that is closed.
func (s *seating) chargedFor(g *gang, pod types.UID) string {
	if h := s.held[pod]; h != nil && !h.leased {
		return charged(pod) // its Lease is closed
	}
	if later, repaid := s.current[pod]; repaid {
		return later.String()
	}
	for name, l := range s.ofRun[g.run.UID] {
		if l.pod == pod {
			return name.String()
		}
	}
	return charged(pod)
}

// from returns a test for what is kept for ranks from an index on.
func from(index int) func(*vacancy) bool { return func(v *vacancy) bool { return v.index >= index } }

// charged returns the name of the charge for the room of a pod that is gone.
func charged(pod types.UID) string { return "vacant/" + string(pod) }

// requeue is what a Run that was requeued because of a node's loss keeps of what it held (R22): younger Runs that wait
// would have it before the Run's new pods are there.
type requeue struct {
	places []place
	// until is gangDeadline after the last of the old Leases was closed; zero while none has been.
	until time.Time
	// lapsed says that the Run did not start in time, until its status says so: its room is given up, and its money is
	// once that is written.
	lapsed bool
}

// has reports whether a place is among those that a gang keeps, or kept.
func (r *requeue) has(pod types.UID) bool {
	return slices.ContainsFunc(r.places, func(p place) bool { return p.pod == pod })
}

// seats reports whether a place is a rank's, and its money with it.
func (r *requeue) seats(rank int) bool {
	return slices.ContainsFunc(r.places, func(p place) bool { return p.index == rank })
}

// placeOf returns whose the place is that a pod of a requeued Run held: its rank's, or any rank's if it was a spare.
func placeOf(p rank.Part) int {
	if p.Spare {
		return anyRank
	}
	return p.Index
}

// seatsPart reports whether a pod is of a rank that has a place already.
func (r *requeue) seatsPart(p rank.Part) bool { return !p.Spare && r.seats(p.Index) }

// gpus returns how many GPUs are kept for a gang that was requeued.
func (r *requeue) gpus() int {
	sum := 0
	for i := range r.places {
		if r.places[i].kept {
			sum += r.places[i].gpus
		}
	}
	return sum
}

// place is the room of one old pod, kept under its name, or no more than the money of a rank whose node is lost.
type place struct {
	pod    types.UID
	index  int // of the rank; anyRank for a spare's
	node   string
	gpus   int
	beside *topology.Amounts // what its pod held beside these
	charge budget.Charge
	kept   bool // else the gang has been given it
}

// room is what is kept for a gang that is planned again, for a while: nobody else is given it, and the gang itself is
// planned as if it were free.
type room struct {
	held  []types.UID
	gpus  int // of all that is held
	until time.Time
	// moves says that it is for a rank of a Run that runs, whose node is being emptied.
	moves bool
}
