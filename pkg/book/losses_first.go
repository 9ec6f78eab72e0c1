package book

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// lossesFirst are the Runs that have ranks on lost nodes, or without a place since such a loss, as this process begins
// to decide, or that have begun to start or to grow: some of their pods have Leases, and nobody knows the places of the
// others.
// Until it has been decided of each of them once what becomes of these ranks, nobody else is given GPUs of their types:
// neither Runs that start, nor growth, nor shards, nor spares.
type lossesFirst struct {
	nodes  *nodeTable
	roster *roster
	seats  *seating
	mail   *mailbox
	of     map[*gang]string // and of which type its GPUs are
	until  time.Time
	// ends are the Leases, by the types of their GPUs, that are about to be closed as this process begins: others of their
	// Runs have been, perhaps. Nor is anybody given GPUs of these types until they are, or endsUntil.
	ends      map[types.NamespacedName]string
	endsUntil time.Time
	// left is how many of both there are of a type, and freed says that by now there are none of one.
	left  map[string]int
	freed bool
}

// lossesWithin is for how long others wait at most: pods may not be taken by the API server, or be others' to make.
const lossesWithin = 20 * time.Second

// endsWithin is for how long they wait at most for Leases to be closed.
const endsWithin = 2 * sweepPeriod

// Why a pod is held back meanwhile.
const (
	whileLost   = "waiting until ranks that were lost, and Runs that were starting, have their places"
	whileEnding = "waiting until the GPU leases of pods that end are closed"
)

// begin finds out which Runs these are.
func (l *lossesFirst) begin(now time.Time) {
	l.of, l.left, l.until = map[*gang]string{}, map[string]int{}, now.Add(lossesWithin)
	for g := range l.roster.living {
		if l.lacks(g) || g.startedInPart() {
			l.of[g] = g.full.Flavor
			l.left[g.full.Flavor]++
		}
	}
	l.ends, l.endsUntil = map[types.NamespacedName]string{}, now.Add(endsWithin)
	for name, open := range l.seats.leases {
		if open.charge.Role != rqv1.RoleBorrowed && l.seats.closes(open) {
			l.ends[name] = open.charge.Flavor
			l.left[open.charge.Flavor]++
		}
	}
	l.note()
}

// lacks reports whether a Run that runs has lost ranks, as is evident, and has no other places for them.
func (l *lossesFirst) lacks(g *gang) bool {
	if !g.started() || g.opportunistic() || g.suspended() || g.shape != nil || g.run.DeletionTimestamp != nil {
		return false
	}
	return len(l.nodes.lostRanks(g)) > 0 || slices.ContainsFunc(g.active.between(0, g.active.size), func(m *member) bool {
		return m != nil && m.placed() && !l.nodes.stands(m.node)
	})
}

// startedInPart reports whether some pods of a gang that starts, or of the cohort that it grows by, have Leases, and
// another one waits for its place.
func (g *gang) startedInPart() bool {
	if g.run == nil || g.started() && !g.grows() || g.over() || g.opportunistic() || g.suspended() || g.shape != nil ||
		g.run.DeletionTimestamp != nil || g.leader() == nil || !g.complete() || g.started() && !g.leader().joins() {
		return false
	}
	for m := range g.all() {
		if m.stage >= leased && m.stage < finished && !m.leaving && !g.old(m.had) && (!g.started() || m.joins()) {
			return true
		}
	}
	return false
}

// decided reports whether what becomes of a Run's ranks has been decided: they have places, or there are none for them,
// or they wait for where they were, which may take long.
func (l *lossesFirst) decided(g *gang) bool {
	if !g.started() && !g.startedInPart() || g.suspended() || g.run.DeletionTimestamp != nil {
		return true
	}
	return g.plan > 0 && !g.woken && (g.refusal == nil || !g.refusal.Passes() || g.refusal.Awaits)
}

// look leaves out those of whom it has been decided.
func (l *lossesFirst) look() {
	for g := range l.of {
		if l.decided(g) {
			l.leave(g)
		}
	}
	if l.freed {
		l.note()
	}
}

// closed leaves out a Lease.
func (l *lossesFirst) closed(name types.NamespacedName) {
	if flavor, waits := l.ends[name]; waits {
		delete(l.ends, name)
		l.less(flavor)
	}
}

// leave leaves out a Run.
func (l *lossesFirst) leave(g *gang) {
	flavor := l.of[g]
	delete(l.of, g)
	l.less(flavor)
}

func (l *lossesFirst) less(flavor string) {
	l.left[flavor]--
	l.freed = l.freed || l.left[flavor] == 0
}

// sweep leaves out also those whose nodes have turned out to stand, and all when that has taken too long.
func (l *lossesFirst) sweep(now time.Time) {
	for g := range l.of {
		if !now.Before(l.until) || !l.lacks(g) && !g.startedInPart() {
			l.leave(g)
		}
	}
	if !now.Before(l.endsUntil) {
		for name := range l.ends {
			l.closed(name)
		}
	}
	if l.freed {
		l.note()
	}
}

// next tells when the others have waited for long enough.
func (l *lossesFirst) next(e *earliest) {
	if len(l.of) > 0 {
		e.by(l.until)
	}
	if len(l.ends) > 0 {
		e.by(l.endsUntil)
	}
}

// note has those be held back that want GPUs of the types of which ranks were lost, and no others any more.
func (l *lossesFirst) note() {
	was := l.roster.bereft
	l.roster.bereft, l.freed = map[string]bool{}, false
	for flavor, n := range l.left {
		if n > 0 {
			l.roster.bereft[flavor] = true
		}
	}
	var freed []*gang
	for g := range l.roster.living {
		if g.run != nil && was[g.full.Flavor] && !l.roster.bereft[g.full.Flavor] {
			freed = append(freed, g)
		}
	}
	slices.SortFunc(freed, byPlace)
	for _, g := range freed {
		if lead := g.leader(); lead != nil {
			l.mail.activate(lead.pod)
		}
	}
}

// holds says why a pod without a place is to wait for what was lost or has ended. Those do not wait that are replaced
// themselves, nor gangs that have room of their own already.
func (l *lossesFirst) holds(m *member) (why string) {
	g := m.gang
	switch {
	case m.stage > unplaced || !l.roster.bereft[g.full.Flavor] || g.opportunistic(),
		g.started() && !m.extra() && !m.joins(), m.joins() && g.startedInPart(),
		!g.started() && (g.underWay() || g.keepsRoom() || g.activates()):
		return ""
	}
	for _, flavor := range l.of {
		if flavor == g.full.Flavor {
			return whileLost
		}
	}
	return whileEnding
}
