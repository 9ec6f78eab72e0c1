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
	alone []int    // how many pods of each kind have room where no others are
}

// mostShared bounds how many kinds of pods share nodes, and mostParts how many kinds times sets there are.
const (
	mostShared = 64
	mostParts  = 512
)

// partsOf divides nodes among kinds, in a domain if one is given: as many pods as possible by GPUs, and by what one
// kind alone finds beside these, have one of their own kind's. It returns the pods of each kind by their parts, and how
// many have none. Of more kinds than it can tell apart those come first that have the least room.
func (p *beside) partsOf(kinds []ofKind, domain string) (out []ofKind, without int) {
	of, s := p.roomOf(kinds, domain, false)
	if s.tooMany(kinds) {
		return s.leastFirst(kinds), 0
	}
	without = s.divide(kinds)
	for i, k := range kinds {
		missing := k.missing
		for at, set := range s.sets {
			if n := s.parts[i][at]; n > 0 {
				part := *k.Kind
				part.Barred = Either(part.Barred, func(node string) bool { return of[node] != set })
				out = append(out, ofKind{&part, missing[:n]})
				missing = missing[n:]
			}
		}
	}
	return out, without
}

// tooMany reports whether there are more kinds than can be told apart.
func (s *shares) tooMany(kinds []ofKind) bool {
	return len(kinds) > mostShared || len(s.sets)*len(kinds) > mostParts
}

// divide has as many pods as possible have their places, and returns how many have none.
func (s *shares) divide(kinds []ofKind) (without int) {
	for i, k := range kinds {
		left := len(k.missing)
		for left > 0 && s.give(i, make([]bool, len(s.sets))) {
			left--
		}
		without += left
	}
	return without
}

// mayHaveRoom reports whether all pods of some kinds could have places, in a domain if one is given, as far as is known
// without trying: a node takes as many as its GPUs do, and no more of a kind than find what that asks for beside these.
func (p *beside) mayHaveRoom(kinds []ofKind, domain string) bool {
	_, s := p.roomOf(kinds, domain, true)
	return s.tooMany(kinds) || s.divide(kinds) == 0
}

// leastFirst returns kinds in order of the room that they have.
func (s *shares) leastFirst(kinds []ofKind) []ofKind {
	room := map[*Kind]int{}
	for i, k := range kinds {
		room[k.Kind] = s.alone[i]
	}
	return slices.SortedStableFunc(slices.Values(kinds), func(a, b ofKind) int {
		return cmp.Compare(room[a.Kind], room[b.Kind])
	})
}

// roomOf returns which kinds find room on a node, a bit for each, and how much there is for them: as much as for the
// kind that finds the most there, or at most where several may ask for what others leave.
func (p *beside) roomOf(kinds []ofKind, domain string, most bool) (of map[string]uint64, s shares) {
	of, pods := map[string]uint64{}, map[string]int{}
	for i, k := range kinds {
		asks := p.ask(k.Kind, k.missing)
		room, nodes := p.fork.fleet.RoomFor(asks), k.Nodes
		asks.Beside = nil
		byGPUs := p.fork.fleet.RoomFor(asks)
		if domain != "" {
			nodes = k.Domains[domain]
		}
		s.alone = append(s.alone, 0)
		for _, node := range nodes {
			if n := room(node); n > 0 {
				of[node] |= 1 << (i % mostShared)
				if most {
					pods[node] = min(pods[node]+n, byGPUs(node))
				} else {
					pods[node] = max(pods[node], n)
				}
				s.alone[i] += n
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
