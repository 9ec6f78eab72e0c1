package book

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/lane"
)

// A gang that waits has one pod, its leader's (R32). Once it is given its places the others are made: until then each
// place is held by a stand-in, a member whose pod has not been made and which is otherwise as the leader's.

// dismiss has a stand-in be gone that has lost its place.
func (p *placement) dismiss(m *member) {
	s := m.gang.squad(m.part)
	delete(p.roster.members, m.pod.UID)
	s.count(m, -1)
	s.members[m.part.Index] = nil
	s.present--
	p.fewerStandIns(m.gang)
	for n := len(s.members); n > 0 && s.members[n-1] == nil; n-- {
		s.members = s.members[:n-1]
	}
}

// dismissAll gives back what stand-ins hold of a gang that has started without their ranks.
func (p *placement) dismissAll(g *gang) {
	for _, m := range slices.Clone(g.active.members) {
		if m != nil && m.standIn {
			p.release(m)
		}
	}
}

// relieve has a pod that has been made take the place of its stand-in, with all that is held there.
func (p *placement) relieve(m *member, pod *corev1.Pod) {
	was := m.pod
	charge, paid := p.accounts.Void(leaseName(was).String())
	delete(p.roster.members, was.UID)
	m.pod, m.standIn = pod, false
	p.roster.members[pod.UID] = m
	p.fewerStandIns(m.gang)
	p.seats.rename(was.UID, pod.UID)
	if paid {
		p.accounts.Open(leaseName(pod).String(), charge)
	}
}

func (p *placement) fewerStandIns(g *gang) {
	g.standIns--
	if g.standIns == 0 {
		delete(p.roster.classes.mustering, g)
	}
}

// came has a pod be scheduled that has found its place kept, and the Run looked at when it was the last one.
func (p *placement) came(m *member) {
	g := m.gang
	g.denial.moves = true
	if g.state() != gangClearing && g.activation == nil {
		p.mail.activate(m.pod)
	}
	if !g.awaitsPods() {
		if g.check.again {
			p.mail.activate(g.active.members[0].pod)
		}
		if g.crowds {
			p.makeRoom(g)
		}
		g.denial, g.futile.refused = denial{}, 0
		p.mail.reconcile(keyOf(g.run), lane.Cut) // others may be told to go by now
	}
}

// unsettled returns the gangs about whose places other scheduling rules are being asked, or whose pods are being made
// before shards leave.
func (p *placement) unsettled() map[*gang]bool {
	out := map[*gang]bool{}
	for run := range p.roster.asking {
		g := p.roster.gangs[run]
		switch {
		case g != nil && g.check.open():
			out[g] = true
		case g == nil || !g.inquiry.pending:
			delete(p.roster.asking, run)
		}
	}
	for g := range p.roster.classes.mustering {
		if g.crowds {
			out[g] = true
		}
	}
	return out
}

// rename has what a pod holds be another's.
func (s *seating) rename(was, is types.UID) {
	h := s.held[was]
	if h == nil {
		return
	}
	delete(s.held, was)
	s.held[is] = h
	if h.idles() {
		s.idlers.note(h.node, was, false)
		s.idlers.note(h.node, is, true)
	}
	s.beside.rename(was, is)
}

// rename has what a pod holds be another's.
func (s *beside) rename(was, is types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of, holds := s.pods[was]; holds {
		delete(s.pods, was)
		s.pods[is] = of
	}
}
