package resolver

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// domain is the Feasibility of nodes in one domain, for pods of equal size.
type domain struct {
	free map[string]int
	pods int // that wait
	each int // GPUs of one
	asks int
}

func (d *domain) Free(holds []Holding) {
	for _, h := range holds {
		d.free[h.Node] += h.GPUs
	}
}

func (d *domain) Hold(holds []Holding) {
	for _, h := range holds {
		d.free[h.Node] -= h.GPUs
	}
}

func (d *domain) Fits() bool {
	d.asks++
	fit := 0
	for _, free := range d.free {
		fit += free / d.each
	}
	return fit >= d.pods
}

func (d *domain) clone() *domain {
	c := *d
	c.free = maps.Clone(d.free)
	return &c
}

// run names a Run, in the namespace of its owner.
func run(owner, name string) Candidate {
	return Candidate{
		Run:   rqv1.NamespacedName{Namespace: "ns-" + owner, Name: name},
		UID:   types.UID("uid-" + owner + "-" + name),
		Owner: rqv1.Owner("org:" + owner),
	}
}

// lot hands out whole nodes and parts of nodes in turn.
type lot struct {
	size, used int
	free       map[string]int
}

// newLot returns nodes of equal size, all free.
func newLot(nodes, size int) *lot {
	l := &lot{size: size, free: map[string]int{}}
	for n := range nodes {
		l.free[fmt.Sprintf("n%03d", n)] = size
	}
	return l
}

// take holds GPUs on the next nodes.
func (l *lot) take(gpus int) []Holding {
	var holds []Holding
	for gpus > 0 {
		node := fmt.Sprintf("n%03d", l.used/l.size)
		n := min(gpus, l.size-l.used%l.size)
		holds = append(holds, Holding{Node: node, GPUs: n})
		l.free[node] -= n
		l.used += n
		gpus -= n
	}
	return holds
}
