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
	resourcehelper "k8s.io/component-helpers/resource"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// amounts are resources by name: CPU in thousandths, all others in their units.
type amounts map[corev1.ResourceName]int64

// beside is what spares hold on their nodes beside GPUs, for the ranks that are to run there (R38): their pods request nothing. A
// rank that takes a spare's place holds it until kube-scheduler counts the rank's own. It has a lock of its own, since every node
// that a pod might go to is asked about, also while the book plans.
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
		if on.total[resource] -= n; on.total[resource] == 0 {
			delete(on.total, resource)
		}
	}
	if on.runs[of.run]--; on.runs[of.run] == 0 {
		delete(on.runs, of.run)
	}
	if len(on.runs) == 0 {
		delete(s.nodes, of.node)
	}
	return true
}

// holdsBeside keeps what a pod holds beside its GPUs in step with its holding. A spare's is what its Run's ranks ask for.
func (b *Book) holdsBeside(pod types.UID, h *holding) {
	if g := b.gangs[h.run]; g != nil && g.run != nil && h.claimed() && (h.spare || h.seated) {
		if asks := b.besides(g); len(asks) > 0 {
			b.beside.set(pod, besideOf{node: h.node, run: keyOf(g.run), amounts: asks})
		}
		return
	}
	if woken := b.beside.drop(pod); len(woken) > 0 {
		b.activate(woken...)
	}
}

// sit has ranks that take the places of spares hold what those held beside GPUs.
func (b *Book) sit(g *gang, seated []plan.Assignment) {
	for _, a := range seated {
		b.hold(g.active.members[a.Index].pod.UID, "", 0, func(h *holding) { h.seated = true })
	}
}

// besides returns what a rank of a gang asks for beside GPUs, as the API server admitted it if there is one.
func (b *Book) besides(g *gang) amounts {
	pod := podOf(g.run)
	if i := slices.IndexFunc(g.active.members, func(m *member) bool { return m != nil }); i >= 0 {
		pod = g.active.members[i].pod
	}
	return b.asks(pod)
}

func (b *Book) asks(pod *corev1.Pod) amounts {
	out := amounts{}
	for resource, quantity := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}) {
		n := quantity.Value()
		if resource == corev1.ResourceCPU {
			n = quantity.MilliValue()
		}
		if n > 0 && resource != corev1.ResourceName(b.args.GPUResource) {
			out[resource] = n
		}
	}
	return out
}

// HoldsBeside reports whether spares hold anything beside GPUs.
func (b *Book) HoldsBeside() bool {
	b.beside.mu.RLock()
	defer b.beside.mu.RUnlock()
	return len(b.beside.nodes) > 0
}

// Withheld says why a pod may not go to a node although the node has what it asks for: spares hold that for their ranks. Free
// returns how much of a resource nobody has requested there. Shards are not kept from it: they give way with the GPUs that they
// run on. A spare needs room for its rank.
func (b *Book) Withheld(pod *corev1.Pod, node string, free func(corev1.ResourceName) int64) string {
	if pod.Labels[rqv1.LabelRole] == string(rqv1.RoleBorrowed) {
		return ""
	}
	b.beside.mu.RLock()
	own, holds := b.beside.pods[pod.UID]
	on := b.beside.nodes[node]
	if on == nil {
		b.beside.mu.RUnlock()
		return ""
	}
	held, run := maps.Clone(on.total), ""
	for name := range on.runs {
		if run == "" || name.String() < run {
			run = name.String()
		}
	}
	b.beside.mu.RUnlock()
	asks := own.amounts
	if !holds {
		asks = b.asks(pod)
	} else if own.node == node {
		for resource, n := range own.amounts {
			held[resource] -= n
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(asks)) {
		if left := free(resource); asks[resource]+held[resource] > left && (held[resource] > 0 || holds) {
			if pod.Labels[rqv1.LabelRun] == "" {
				b.withhold(pod)
			}
			return fmt.Sprintf("%s is held for ranks by spares of Run %s (R38): %s asked for, %s held, %s free", resource, run,
				said(resource, asks[resource]), said(resource, held[resource]), said(resource, left))
		}
	}
	return ""
}

func (b *Book) withhold(pod *corev1.Pod) {
	b.beside.mu.Lock()
	defer b.beside.mu.Unlock()
	b.beside.withheld[pod.UID] = pod
}

// forgetWithheld drops a pod that is gone.
func (b *Book) forgetWithheld(pod types.UID) {
	b.beside.mu.Lock()
	defer b.beside.mu.Unlock()
	delete(b.beside.withheld, pod)
}

// said writes an amount as pods do.
func said(resource corev1.ResourceName, n int64) string {
	if resource == corev1.ResourceCPU {
		return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", float64(n)/1000), "0"), ".")
	}
	return fmt.Sprint(n)
}
