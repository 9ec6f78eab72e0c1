package controllers

import (
	"container/heap"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/lane"
)

// shares deals the workers of a lane out to namespaces: one gets another worker as long as it has fewer than are idle.
// So a namespace that is alone has half of them, and one in which every write is slow, such as by a webhook that does
// not answer, leaves workers to all others.
type shares struct {
	idle  int
	has   map[string]int    // workers, by namespace
	aside map[string]*aside // Runs whose namespace has its share
}

func newShares(workers int) *shares {
	return &shares{idle: workers, has: map[string]int{}, aside: map[string]*aside{}}
}

// take gives a worker to a Run, or has it stand aside.
func (s *shares) take(run types.NamespacedName, work lane.Work) bool {
	if !s.may(run.Namespace) {
		if s.aside[run.Namespace] == nil {
			s.aside[run.Namespace] = &aside{work: map[types.NamespacedName]lane.Work{}}
		}
		s.aside[run.Namespace].add(run, work)
		return false
	}
	s.idle--
	s.has[run.Namespace]++
	return true
}

func (s *shares) may(namespace string) bool { return s.has[namespace] < s.idle }

// done takes the worker of a Run back and returns those who no longer stand aside, at most one of a namespace: the next
// comes when that one is done.
func (s *shares) done(run types.NamespacedName) []asideRun {
	s.idle++
	s.has[run.Namespace]--
	if s.has[run.Namespace] == 0 {
		delete(s.has, run.Namespace)
	}
	var back []asideRun
	for namespace, others := range s.aside {
		if s.may(namespace) {
			back = append(back, others.next())
		}
		if len(others.work) == 0 {
			delete(s.aside, namespace)
		}
	}
	slices.SortFunc(back, func(x, y asideRun) int { return int(y.work - x.work) })
	return back
}

// waiting returns how many Runs stand aside.
func (s *shares) waiting() int {
	all := 0
	for _, others := range s.aside {
		all += len(others.work)
	}
	return all
}

// aside are Runs of one namespace that wait for a worker, what goes first on top and, of that, who came first.
type aside struct {
	heap []asideRun
	work map[types.NamespacedName]lane.Work
	came int
}

type asideRun struct {
	run  types.NamespacedName
	work lane.Work
	came int
}

// add has a Run wait. One that waits already keeps its place unless its work goes before now.
func (a *aside) add(run types.NamespacedName, work lane.Work) {
	if was, waits := a.work[run]; waits && was >= work {
		return
	}
	a.came++
	a.work[run] = work
	heap.Push(a, asideRun{run, work, a.came})
}

// next returns the Run that goes first, which waits no longer.
func (a *aside) next() asideRun {
	for {
		first := heap.Pop(a).(asideRun)
		if work, waits := a.work[first.run]; waits && work == first.work {
			delete(a.work, first.run)
			return first
		}
	}
}

func (a *aside) Len() int { return len(a.heap) }
func (a *aside) Less(i, j int) bool {
	if a.heap[i].work != a.heap[j].work {
		return a.heap[i].work > a.heap[j].work
	}
	return a.heap[i].came < a.heap[j].came
}
func (a *aside) Swap(i, j int) { a.heap[i], a.heap[j] = a.heap[j], a.heap[i] }
func (a *aside) Push(x any)    { a.heap = append(a.heap, x.(asideRun)) }
func (a *aside) Pop() any {
	last := a.heap[len(a.heap)-1]
	a.heap = a.heap[:len(a.heap)-1]
	return last
}
