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
	sets  []uint64 // of kinds that may use the same nodes, a bit for each; the smallest first
	room  []int    // how many pods more the nodes of a set take
	parts [][]int  // how many pods of each kind are there
}

// mostShared bounds how many kinds of pods share nodes, and mostParts how many kinds times sets there are.
const (
	mostShared = 64
	mostParts  = 512
)

// sharesOf divides nodes among kinds, in a domain if one is given: each pod has one of its own kind's, wherever that is
// possible by GPUs. It returns the pods of each kind by their parts; nothing where it is not possible.
func (p *beside) sharesOf(kinds []ofKind, domain string) (out []ofKind) {
	if len(kinds) < 2 || len(kinds) > mostShared {
		return nil
	}
	of, s := p.roomOf(kinds, domain)
	if len(s.sets)*len(kinds) > mostParts {
		return nil
	}
	for i, k := range kinds {
		for range k.missing {
			if !s.give(i, make([]bool, len(s.sets))) {
				return nil
			}
		}
	}
	for i, k := range kinds {
		missing := k.missing
		for at, set := range s.sets {
			if n := s.parts[i][at]; n > 0 {
				part := *k.Kind
				part.Barred = either(part.Barred, func(node string) bool { return of[node] != set })
				out = append(out, ofKind{&part, missing[:n]})
				missing = missing[n:]
			}
		}
	}
	return out
}

// roomOf returns which kinds find room on a node, a bit for each, and how much there is for them.
func (p *beside) roomOf(kinds []ofKind, domain string) (of map[string]uint64, s shares) {
	of, pods := map[string]uint64{}, map[string]int{}
	for i, k := range kinds {
		room := p.fork.fleet.RoomFor(p.attempt(k.Kind, k.missing).request)
		for _, node := range k.Nodes {
			if domain != "" && p.fork.fleet.DomainOf(node) != domain {
				continue
			}
			if n := room(node); n > 0 {
				of[node] |= 1 << i
				pods[node] = max(pods[node], n)
			}
		}
	}
	in := map[uint64]int{}
	for node, set := range of {
		in[set] += pods[node]
	}
	s.sets = slices.SortedFunc(maps.Keys(in), func(a, b uint64) int {
		return cmp.Or(cmp.Compare(bits.OnesCount64(a), bits.OnesCount64(b)), cmp.Compare(a, b))
	})
	for _, set := range s.sets {
		s.room = append(s.room, in[set])
	}
	for range kinds {
		s.parts = append(s.parts, make([]int, len(s.sets)))
	}
	return of, s
}

// give has one pod more of a kind be somewhere, which may have pods of others go elsewhere; seen are the sets that are
// tried already.
func (s *shares) give(kind int, seen []bool) bool {
	for at, set := range s.sets {
		if set&(1<<kind) != 0 && s.room[at] > 0 {
			s.room[at]--
			s.parts[kind][at]++
			return true
		}
	}
	for at, set := range s.sets {
		if set&(1<<kind) == 0 || seen[at] {
			continue
		}
		seen[at] = true
		for other := range s.parts {
			if other != kind && s.parts[other][at] > 0 && s.give(other, seen) {
				s.parts[other][at]--
				s.parts[kind][at]++
				return true
			}
		}
	}
	return false
}
