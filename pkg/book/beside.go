package book

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// amounts are resources by name: CPU in thousandths, all others in their units.
type amounts map[corev1.ResourceName]int64

// beside is what spares hold on their nodes beside GPUs, for the ranks that are to run there (R38): their pods request
// nothing. A rank that takes a spare's place holds it until kube-scheduler counts the rank's own. It has a lock of its
// own, since every node that a pod might go to is asked about, also while the book plans.
type beside struct {
	mu    sync.RWMutex
	nodes map[string]*besideOn
	pods  map[types.UID]besideOf
	// withheld are the pods that are no Run's and were kept from a node for it, until some of it is given back.
	withheld map[types.UID]*corev1.Pod
}

// besideOn is what is held on one node, and how many pods of each Run hold some of it.
type besideOn struct {
	total amounts
	runs  map[types.NamespacedName]int
}

// besideOf is what one pod holds.
type besideOf struct {
	node string
	run  types.NamespacedName
	amounts
}

func newBeside() beside {
	return beside{nodes: map[string]*besideOn{}, pods: map[types.UID]besideOf{}, withheld: map[types.UID]*corev1.Pod{}}
}

// set has a pod hold something, instead of what it held before.
func (s *beside) set(pod types.UID, of besideOf) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(pod)
	s.pods[pod] = of
	on := s.nodes[of.node]
	if on == nil {
		on = &besideOn{total: amounts{}, runs: map[types.NamespacedName]int{}}
		s.nodes[of.node] = on
	}
	on.runs[of.run]++
	for resource, n := range of.amounts {
		on.total[resource] += n
	}
}

// drop gives back what a pod holds, and returns the pods that may fit now.
func (s *beside) drop(pod types.UID) []*corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.take(pod) || len(s.withheld) == 0 {
		return nil
	}
	woken := slices.SortedFunc(maps.Values(s.withheld), func(x, y *corev1.Pod) int { return cmp.Compare(x.UID, y.UID) })
	clear(s.withheld)
	return woken
}

func (s *beside) take(pod types.UID) bool {
	of, known := s.pods[pod]
	if !known {
		return false
	}
	delete(s.pods, pod)
	on := s.nodes[of.node]
	for resource, n := range of.amounts {
		on.total[resource] -= n
		if on.total[resource] == 0 {
			delete(on.total, resource)
		}
	}
	on.runs[of.run]--
	if on.runs[of.run] == 0 {
		delete(on.runs, of.run)
	}
	if len(on.runs) == 0 {
		delete(s.nodes, of.node)
	}
	return true
}

// said writes an amount as pods do.
func said(resource corev1.ResourceName, n int64) string {
	if resource == corev1.ResourceCPU {
		return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", float64(n)/1000), "0"), ".")
	}
	return fmt.Sprint(n)
}
