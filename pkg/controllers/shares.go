package controllers

import (
	"container/heap"
	"maps"
	"slices"

	"github.com/davidlangworthy/jobtree/pkg/lane"
)

// shares deals workers out to namespaces: one gets another worker as long as it has fewer than are idle. So a namespace
// that is alone has half of them, and one in which every request is slow, such as by a webhook that does not answer,
// leaves workers to all others. K names what is worked on.
type shares[K comparable] struct {
	idle  int
	has   map[string]int       // workers, by namespace
	aside map[string]*aside[K] // those whose namespace has its share
}

func newShares[K comparable](workers int) *shares[K] {
	return &shares[K]{idle: workers, has: map[string]int{}, aside: map[string]*aside[K]{}}
}

// take gives a worker to what is named, which is in a namespace, or has it stand aside.
func (s *shares[K]) take(namespace string, key K, work lane.Work) bool {
	if !s.may(namespace) {
		if s.aside[namespace] == nil {
			s.aside[namespace] = &aside[K]{work: map[K]lane.Work{}}
		}
		s.aside[namespace].add(key, work)
		return false
	}
	s.idle--
	s.has[namespace]++
	return true
}

func (s *shares[K]) may(namespace string) bool { return s.has[namespace] < s.idle }

// done takes a worker of a namespace back and returns those who no longer stand aside, at most one of a namespace: the
// next comes when that one is done. What goes first leads; of the same, the namespaces in order.
func (s *shares[K]) done(namespace string) []standing[K] {
	s.idle++
	s.has[namespace]--
	if s.has[namespace] == 0 {
		delete(s.has, namespace)
	}
	var back []standing[K]
	for _, namespace := range slices.Sorted(maps.Keys(s.aside)) {
		others := s.aside[namespace]
		if s.may(namespace) {
			back = append(back, others.next())
		}
		if len(others.work) == 0 {
			delete(s.aside, namespace)
		}
	}
	slices.SortStableFunc(back, func(x, y standing[K]) int { return int(y.work - x.work) })
	return back
}

// waiting returns how many stand aside.
func (s *shares[K]) waiting() int {
	all := 0
	for _, others := range s.aside {
		all += len(others.work)
	}
	return all
}

// aside are those of one namespace that wait for a worker, what goes first on top and, of that, who came first.
type aside[K comparable] struct {
	heap []standing[K]
	work map[K]lane.Work
	came int
}

type standing[K comparable] struct {
	key  K
	work lane.Work
	came int
}

// add has one wait. One that waits already keeps its place unless its work goes before now.
func (a *aside[K]) add(key K, work lane.Work) {
	if was, waits := a.work[key]; waits && was >= work {
		return
	}
	a.came++
	a.work[key] = work
	heap.Push(a, standing[K]{key, work, a.came})
}

// next returns the one that goes first, which waits no longer.
func (a *aside[K]) next() standing[K] {
	for {
		first := heap.Pop(a).(standing[K])
		if work, waits := a.work[first.key]; waits && work == first.work {
			delete(a.work, first.key)
			return first
		}
	}
}

func (a *aside[K]) Len() int { return len(a.heap) }
func (a *aside[K]) Less(i, j int) bool {
	if a.heap[i].work != a.heap[j].work {
		return a.heap[i].work > a.heap[j].work
	}
	return a.heap[i].came < a.heap[j].came
}
func (a *aside[K]) Swap(i, j int) { a.heap[i], a.heap[j] = a.heap[j], a.heap[i] }
func (a *aside[K]) Push(x any)    { a.heap = append(a.heap, x.(standing[K])) }
func (a *aside[K]) Pop() any {
	last := a.heap[len(a.heap)-1]
	a.heap = a.heap[:len(a.heap)-1]
	return last
}
