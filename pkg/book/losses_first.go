package book

import (
	"slices"
	"time"
)

// lossesFirst are the Runs that have ranks on lost nodes, or without a place since such a loss, as this process begins
// to decide. Until it has been decided of each of them once what becomes of these ranks, nobody else is given GPUs of
// their types: neither Runs that start, nor growth, nor shards, nor spares.
type lossesFirst struct {
	nodes  *nodeTable
	roster *roster
	mail   *mailbox
	of     map[*gang]bool
	until  time.Time
}

// lossesWithin is for how long others wait at most: pods may not be taken by the API server, or be others' to make.
const lossesWithin = 20 * time.Second

// whileLost is why a pod is held back meanwhile.
const whileLost = "waiting until ranks that were lost have their places"

// begin finds out which Runs these are.
func (l *lossesFirst) begin(now time.Time) {
	l.of, l.until = map[*gang]bool{}, now.Add(lossesWithin)
	for g := range l.roster.living {
		if l.lacks(g) {
			l.of[g] = true
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

// decided reports whether what becomes of a Run's ranks has been decided: they have places, or there are none for them.
func (l *lossesFirst) decided(g *gang) bool {
	if !g.started() || g.suspended() || g.run.DeletionTimestamp != nil {
		return true
	}
	return g.plan > 0 && !g.woken && (g.refusal == nil || !g.refusal.Passes())
}

// look leaves out those of whom it has been decided.
func (l *lossesFirst) look() {
	before := len(l.of)
	for g := range l.of {
		if l.decided(g) {
			delete(l.of, g)
		}
	}
	if len(l.of) < before {
		l.note()
	}
}

// sweep leaves out also those whose nodes have turned out to stand, and all when that has taken too long.
func (l *lossesFirst) sweep(now time.Time) {
	before := len(l.of)
	for g := range l.of {
		if !now.Before(l.until) || !l.lacks(g) {
			delete(l.of, g)
		}
	}
	if len(l.of) < before {
		l.note()
	}
}

// next tells when the others have waited for long enough.
func (l *lossesFirst) next(e *earliest) {
	if len(l.of) > 0 {
		e.by(l.until)
	}
}

// note has those be held back that want GPUs of the types of which ranks were lost, and no others any more.
func (l *lossesFirst) note() {
	was := l.roster.bereft
	l.roster.bereft = map[string]bool{}
	for g := range l.of {
		l.roster.bereft[g.full.Flavor] = true
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

// holds reports whether a pod without a place is to wait for ranks that were lost. Those do not wait that are replaced
// themselves, nor gangs that have room of their own already.
func (l *lossesFirst) holds(m *member) bool {
	g := m.gang
	switch {
	case m.stage > unplaced || !l.roster.bereft[g.full.Flavor] || g.opportunistic():
		return false
	case g.started():
		return m.extra() || m.joins()
	}
	return !g.underWay() && !g.keepsRoom() && !g.activates()
}
