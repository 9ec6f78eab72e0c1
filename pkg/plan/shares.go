package plan

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
)

// shares is nodes of which each kind of pods has its part: those that the same kinds may use count as one, since any of
// them does for any of these.
type shares struct {
	kinds []ofKind
	of    map[string]uint64 // which kinds may use a node, a bit each
	sets  []uint64          // those sets of kinds, the smallest first
	room  map[uint64]int    // how many pods more the nodes of a set take
	parts []map[uint64]int  // how many pods of each kind are there
}

// mostShared is how many kinds of pods may share nodes.
const mostShared = 64

// sharesOf divides the nodes among kinds whose pods are free to be on any: each pod has one of its own kind's, wherever
// that is possible by GPUs. It returns the pods of each kind by their parts; nothing where it is not possible.
func (p *beside) sharesOf() (out []ofKind) {
	if len(p.kinds) > mostShared {
		return nil
	}
	s := shares{kinds: p.kinds, of: map[string]uint64{}, room: map[uint64]int{},
		parts: make([]map[uint64]int, len(p.kinds))}
	for i, k := range p.kinds {
		s.parts[i] = map[uint64]int{}
		for _, node := range k.Nodes {
			s.of[node] |= 1 << i
		}
	}
	for node, set := range s.of {
		s.room[set] += p.takes(node)
	}
	s.sets = slices.SortedFunc(maps.Keys(s.room), func(a, b uint64) int {
		return cmp.Or(cmp.Compare(bits.OnesCount64(a), bits.OnesCount64(b)), cmp.Compare(a, b))
	})
	for i, k := range p.kinds {
		for range k.missing {
			if !s.give(i, map[uint64]bool{}) {
				return nil
			}
		}
	}
	for i, k := range p.kinds {
		missing := k.missing
		for _, set := range s.sets {
			if n := s.parts[i][set]; n > 0 {
				part := *k.Kind
				part.Barred = either(part.Barred, func(node string) bool { return s.of[node] != set })
				out = append(out, ofKind{&part, missing[:n]})
				missing = missing[n:]
			}
		}
	}
	return out
}

// takes is how many of the pods a node takes, whatever their kind.
func (p *beside) takes(node string) int {
	if p.excluded != nil && p.excluded(node) || p.within != nil && !p.within[p.fork.fleet.DomainOf(node)] {
		return 0
	}
	pods := p.fork.fleet.Free(node) / p.demand.GPUsPerPod
	if most, bounded := p.left.Most[node]; bounded {
		pods = min(pods, most)
	}
	return pods
}

// give has one pod more of a kind be somewhere, which may have pods of others go elsewhere; seen are the sets that are
// tried already.
func (s *shares) give(kind int, seen map[uint64]bool) bool {
	for _, set := range s.sets {
		if set&(1<<kind) == 0 || seen[set] {
			continue
		}
		seen[set] = true
		if s.room[set] > 0 {
			s.room[set]--
			s.parts[kind][set]++
			return true
		}
		for other := range s.kinds {
			if other != kind && s.parts[other][set] > 0 && s.give(other, seen) {
				s.parts[other][set]--
				s.parts[kind][set]++
				return true
			}
		}
	}
	return false
}
