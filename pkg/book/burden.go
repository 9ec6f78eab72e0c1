package book

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// setBystander notes what a pod without GPUs holds of its node. Spares' pods are none: they hold what their ranks ask
// for.
func (s *seating) setBystander(pod *corev1.Pod) {
	if _, _, ours := rank.Membership(pod); ours {
		return
	}
	next := bystander{pod.Spec.NodeName, s.nodes.kinds.besideGPUs(pod)}
	if was, known := s.bystanders[pod.UID]; !known || was != next {
		s.dropBystander(pod.UID)
		s.bystanders[pod.UID] = next
		s.fleet.Burden(next.node, next.beside, +1)
	}
}

// dropBystander gives back what such a pod held, for the gangs that were refused for want of it, or that its node
// turned down for what it is.
func (s *seating) dropBystander(pod types.UID) {
	was, known := s.bystanders[pod]
	if !known {
		return
	}
	delete(s.bystanders, pod)
	s.fleet.Burden(was.node, was.beside, -1)
	s.waiting.eased(s.nodes.nodeFlavor(was.node))
	s.waiting.noteLeft(was.node)
}

// setBeside notes what a member asks for beside GPUs, which may change while it runs.
func (s *seating) setBeside(m *member, pod *corev1.Pod, added bool) {
	asks := s.nodes.kinds.besideGPUs(pod)
	if !added && asks == m.beside {
		return
	}
	m.beside = asks
	s.holdAnew(m)
	for _, spare := range m.gang.spares.members {
		if spare != nil && !m.part.Spare && m.gang.theirs() && m.gang.indexOf(spare.part) == m.part.Index {
			s.holdAnew(spare)
		}
	}
}

// holdAnew has a member hold what it asks for by now.
func (s *seating) holdAnew(m *member) {
	if s.held[m.pod.UID] != nil {
		s.hold(m.pod.UID, "", 0, func(*holding) {})
	}
}

// besideOf returns what a holding holds beside its GPUs: what its pod asks for, or the rank whose room it is.
func (s *seating) besideOf(pod types.UID, h *holding) *topology.Amounts {
	m := s.roster.members[pod]
	switch {
	case m == nil, m.part.Spare && h.vacant && h.beside != nil:
		return h.beside
	case m.part.Spare:
		return m.gang.asks(m.part, h.beside)
	}
	return m.beside
}

// shardRoom returns how many more shards, up to most, find what they ask for of a node beside GPUs: what spares hold
// that stand by is theirs to use.
func (s *seating) shardRoom(node string, beside *topology.Amounts, most int) int {
	shards := slices.Collect(maps.Keys(s.shards[node]))
	defer s.withShards(node, shards)()
	return s.fleet.RoomBeside(node, beside, most)
}

// crowded reports whether some shards ask for more than there is for them on their node beside GPUs.
func (s *seating) crowded(node string, shards []types.UID) bool {
	defer s.withShards(node, shards)()
	return slices.ContainsFunc(shards, func(pod types.UID) bool {
		return s.fleet.Lacks(node, s.held[pod].beside, 0) != ""
	})
}

// withShards has the fleet count some shards on a node instead of the spares that stand by there, until what it returns
// is called.
func (s *seating) withShards(node string, shards []types.UID) (undo func()) {
	count := func(by int) {
		for spare := range s.idlers[node] {
			s.fleet.Burden(node, s.held[spare].beside, -by)
		}
		for _, pod := range shards {
			s.fleet.Burden(node, s.held[pod].beside, by)
		}
	}
	count(+1)
	return func() { count(-1) }
}
