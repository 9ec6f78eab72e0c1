package book

import (
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// rebuff is an activation that other scheduling rules have made vain. Nobody is cut for its gang again until the fleet has changed so
// that it could end otherwise, or until it has rested: what kept the gang off may be other people's pods, which are not in the book.
type rebuff struct {
	reservation types.UID
	// refused are the nodes that turned the gang down, as they were; a process that was not there takes all in the domains of the
	// Reservation's slice for them.
	refused map[string]*corev1.Node
	// served is what there was for the gang then, by node, and seen the state of the nodes that was last compared with it.
	served map[string]serving
	seen   int64
	// over says that something has changed since.
	over bool
}

// serving is a node that serves a gang, and how many GPUs it has for it.
type serving struct {
	node types.UID
	gpus int
}

// firstRest is how long nobody is cut again after the first activation of a Run that was in vain, and longestRest how long after any;
// each in between lasts twice as long as the one before.
const (
	firstRest   = 4 * time.Hour
	longestRest = 24 * time.Hour
)

// noteRebuff notes that an activation was in vain because nodes turned the gang down, and what there is for the gang now.
func (b *Book) noteRebuff(g *gang, reservation types.UID, refused []string) {
	nodes := map[string]*corev1.Node{}
	for _, name := range refused {
		if node := b.nodes[name]; node != nil {
			nodes[name] = node
		}
	}
	g.rebuff = rebuff{reservation: reservation, refused: nodes, served: b.servedBy(g), seen: b.waiting.nodes[g.run.Spec.Resources.GPUType]}
}

// servedBy returns the nodes that serve a gang now.
func (b *Book) servedBy(g *gang) map[string]serving {
	out, barred := map[string]serving{}, b.barred(podOf(g.run))
	for name, node := range b.nodes {
		if b.flavorOf(node) == g.run.Spec.Resources.GPUType && b.serves(node) && (barred == nil || !barred(name)) {
			out[name] = serving{node.UID, b.gpusOf(node)}
		}
	}
	return out
}

// rebuffed returns the Reservation by which others were last cut for a gang in vain, because other scheduling rules kept it from its
// nodes; nil when there is none, when that is long ago, when one of the nodes that turned it down is another by now, or when more of
// them serve it.
func (b *Book) rebuffed(g *gang, now time.Time) *rqv1.Reservation {
	var last *rqv1.Reservation
	rest := firstRest / 2
	for _, r := range b.reservations.ofRun(g.run.UID) {
		if r.Status.Cause != rqv1.CanceledNodesRejected || r.Status.EndedAt == nil {
			continue
		}
		if last == nil {
			last = r
		}
		rest = min(2*rest, longestRest)
	}
	if last == nil || !now.Before(last.Status.EndedAt.Add(rest)) {
		return nil
	}
	if g.rebuff.reservation != last.UID {
		b.noteRebuff(g, last.UID, b.nodesAround(last))
		for name := range g.rebuff.served { // it came while nobody looked
			g.rebuff.over = g.rebuff.over || b.nodes[name].CreationTimestamp.After(last.Status.EndedAt.Time)
		}
	}
	if g.rebuff.over = g.rebuff.over || b.helped(g); g.rebuff.over {
		g.rebuff.refused, g.rebuff.served = nil, nil
		return nil
	}
	return last
}

// helped reports whether what there is for a gang that has been rebuffed differs so from what there was that it might be accepted.
func (b *Book) helped(g *gang) bool {
	for name, then := range g.rebuff.refused {
		if now := b.nodes[name]; now != nil && b.serves(now) && differ(then, now) {
			return true
		}
	}
	nodes := b.waiting.nodes[g.run.Spec.Resources.GPUType]
	if g.rebuff.seen == nodes {
		return false
	}
	g.rebuff.seen = nodes
	for name, now := range b.servedBy(g) {
		if then, served := g.rebuff.served[name]; !served || then.node != now.node || then.gpus < now.gpus {
			return true
		}
	}
	return false
}

// differ reports whether a node is another in what scheduling rules look at.
func differ(x, y *corev1.Node) bool {
	return !maps.Equal(x.Labels, y.Labels) || !equality.Semantic.DeepEqual(x.Spec.Taints, y.Spec.Taints) ||
		!equality.Semantic.DeepEqual(x.Status.Allocatable, y.Status.Allocatable)
}

// nodesAround returns the nodes in the domains of a Reservation's slice, of which those are that turned its Run down.
func (b *Book) nodesAround(r *rqv1.Reservation) (names []string) {
	domains := b.domainsAround(r)
	for name := range b.nodes {
		if domains[b.fleet.DomainOf(name)] {
			names = append(names, name)
		}
	}
	return names
}

// nobody is who may be cut for a gang that has been rebuffed.
func nobody(map[string]bool, time.Time) []resolver.Candidate { return nil }

// tellRebuff has the refusal of a gang that has been rebuffed say so.
func (b *Book) tellRebuff(g *gang, now time.Time) {
	if r := b.rebuffed(g, now); r != nil && g.refusal != nil && !strings.Contains(g.refusal.Message, r.Name) {
		told := *g.refusal
		told.Message += fmt.Sprintf("; nobody is cut for it again until a node that turned it down changes or more nodes serve it, or for hours: "+
			"the cuts of Reservation %s were in vain", r.Name)
		g.refusal = &told
	}
}
