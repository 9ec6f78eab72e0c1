package group

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// seat is what a pod has in common with those that it replaces, and with those whose ranks belong together with its
// own.
type seat struct {
	Part
	index int // 0 where ranks belong together
}

// Seats returns which ranks some pods of a group are for that have none, -1 for any, beside those that have ranks. A
// pod is for the rank that it has by what it says, or that the one has which it replaces. Where another pod has that,
// since it was free or another's once, it is for one that nobody has; ranks that belong together are given together.
func (s *Shape) Seats(waiting, members []*corev1.Pod) map[types.UID]int {
	t := seating{shape: s, unit: max(1, s.slice()), at: map[seat]int{}, by: map[int]seat{}, held: map[int]bool{}}
	for _, pod := range byName(members) {
		t.has(pod)
	}
	sorted := byName(waiting)
	for _, pod := range sorted {
		t.claim(pod)
	}
	for _, pod := range sorted {
		t.keep(pod)
	}
	out := map[types.UID]int{}
	for _, pod := range sorted {
		out[pod.UID] = t.give(pod)
	}
	return out
}

func byName(pods []*corev1.Pod) []*corev1.Pod {
	return slices.SortedFunc(slices.Values(pods), func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
}

// seating is where the seats of a group are, in units of as many ranks as belong together.
type seating struct {
	shape *Shape
	unit  int
	at    map[seat]int
	by    map[int]seat // who has a unit, or is for it
	held  map[int]bool // where there are pods that have ranks, those included that go
}

func (t *seating) seatOf(pod *corev1.Pod) seat {
	m := Of(pod)
	if t.unit > 1 {
		return seat{Part: m.Part}
	}
	return seat{m.Part, m.Index}
}

// has notes the rank that a pod has.
func (t *seating) has(pod *corev1.Pod) {
	_, part, ok := rank.Membership(pod)
	if !ok || part.Spare {
		return
	}
	of, at := t.seatOf(pod), part.Index/t.unit
	t.held[at] = true
	stays := pod.DeletionTimestamp == nil && !rank.Ended(pod)
	if stays {
		t.by[at] = of
	}
	if _, known := t.at[of]; !known || stays {
		t.at[of] = at
	}
}

// claim notes that a pod is for the rank that the one has which it replaces, unless another pod has that by now.
func (t *seating) claim(pod *corev1.Pod) {
	of := t.seatOf(pod)
	at, known := t.at[of]
	if !known || t.shape.Rank(pod) < 0 {
		return
	}
	if by, taken := t.by[at]; taken && by != of {
		delete(t.at, of)
	} else {
		t.by[at] = of
	}
}

// keep notes the rank that a pod has by what it says, if nobody else has it.
func (t *seating) keep(pod *corev1.Pod) {
	nominal, of := t.shape.Rank(pod), t.seatOf(pod)
	if _, known := t.at[of]; known || nominal < 0 {
		return
	}
	at := nominal / t.unit
	if by, taken := t.by[at]; !taken || by == of {
		t.at[of], t.by[at] = at, of
	}
}

// give returns the rank that a pod is for.
func (t *seating) give(pod *corev1.Pod) int {
	nominal, of := t.shape.Rank(pod), t.seatOf(pod)
	if nominal < 0 {
		return -1
	}
	at, known := t.at[of]
	if !known && t.unit == 1 {
		return -1
	}
	if !known {
		for _, taken := t.by[at]; at < t.shape.Ranks/t.unit && (taken || t.held[at]); _, taken = t.by[at] {
			at++
		}
		t.at[of], t.by[at] = at, of
	}
	return at*t.unit + nominal%t.unit
}
