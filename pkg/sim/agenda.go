package sim

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"
	"time"
)

// Agenda is what happens at a time, one thing for each key.
type Agenda[K ~string] struct {
	at   map[K]time.Time
	heap entries[K] // also has what was taken off or put off since, which At tells
}

func newAgenda[K ~string]() *Agenda[K] { return &Agenda[K]{at: map[K]time.Time{}} }

// Len returns how many things are to happen.
func (a *Agenda[K]) Len() int { return len(a.at) }

// Keys returns what is to happen, in order of the keys.
func (a *Agenda[K]) Keys() []K { return slices.Sorted(maps.Keys(a.at)) }

// At returns when something is to happen; zero for never.
func (a *Agenda[K]) At(key K) time.Time { return a.at[key] }

// Has reports whether something is to happen.
func (a *Agenda[K]) Has(key K) bool {
	_, has := a.at[key]
	return has
}

// Set has something happen at a time, and not when it was to happen before.
func (a *Agenda[K]) Set(key K, at time.Time) {
	a.at[key] = at
	heap.Push(&a.heap, entry[K]{key, at})
}

// Delete has something not happen.
func (a *Agenda[K]) Delete(key K) { delete(a.at, key) }

// Clear has nothing happen.
func (a *Agenda[K]) Clear() { clear(a.at) }

// First returns what is to happen first, and when; false if nothing is.
func (a *Agenda[K]) First() (key K, at time.Time, ok bool) {
	for len(a.heap) > 0 {
		if first := a.heap[0]; a.Has(first.key) && a.at[first.key].Equal(first.at) {
			return first.key, first.at, true
		}
		heap.Pop(&a.heap)
	}
	return "", time.Time{}, false
}

// Due takes off and returns what is to happen by an instant: what is first, first, and in order of the keys at one
// instant.
func (a *Agenda[K]) Due(now time.Time) []K {
	var out []K
	for key, at, ok := a.First(); ok && !at.After(now); key, at, ok = a.First() {
		a.Delete(key)
		out = append(out, key)
	}
	return out
}

// Shift has everything happen later, or sooner where it is negative: clocks were set.
func (a *Agenda[K]) Shift(by time.Duration) {
	a.heap = a.heap[:0]
	for _, key := range a.Keys() {
		a.Set(key, a.at[key].Add(by))
	}
}

type entry[K ~string] struct {
	key K
	at  time.Time
}

// entries are a heap, the first of them first.
type entries[K ~string] []entry[K]

func (e entries[K]) Len() int      { return len(e) }
func (e entries[K]) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *entries[K]) Push(x any)   { *e = append(*e, x.(entry[K])) }

func (e entries[K]) Less(i, j int) bool {
	return cmp.Or(e[i].at.Compare(e[j].at), cmp.Compare(e[i].key, e[j].key)) < 0
}

func (e *entries[K]) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
