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
// that it could end otherwise.
type rebuff struct {
	reservation types.UID
	// refused are the nodes that turned the gang down, and why; a process that was not there takes all in the domains of the
	// Reservation's slice for them.
	refused map[string]string
	// saw is what there was for the gang then.
	saw map[string]glimpse
	// over says that something has changed since.
	over bool
}

// glimpse is a node as it once was, and how many GPUs it has for pods of a gang; none while they may not go there.
type glimpse struct {
	node *corev1.Node
	gpus int
}

// noteRebuff notes that an activation was in vain, and what there is for the gang now.
func (b *Book) noteRebuff(g *gang, reservation types.UID, refused map[string]string) {
	g.rebuff = rebuff{reservation: reservation, refused: refused, saw: b.glimpses(g)}
}

// glimpses returns the nodes of a gang's flavor as they are now.
func (b *Book) glimpses(g *gang) map[string]glimpse {
	out, barred := map[string]glimpse{}, b.barred(podOf(g.run))
	for name, node := range b.nodes {
		if b.flavorOf(node) != g.run.Spec.Resources.GPUType {
			continue
		}
		seen := glimpse{node: node}
		if b.serves(node) && (barred == nil || !barred(name)) {
			seen.gpus = b.gpusOf(node)
		}
		out[name] = seen
	}
	return out
}

// rebuffed returns the Reservation by which others were last cut for a gang in vain, because other scheduling rules kept it from its
// nodes; nil when there is none, or when one of the nodes that turned it down is another by now, or when more of them serve it.
func (b *Book) rebuffed(g *gang) *rqv1.Reservation {
	for _, r := range b.reservations.ofRun(g.run.UID) {
		if r.Status.Cause != rqv1.CanceledNodesRejected || r.Status.EndedAt == nil {
			continue
		}
		if g.rebuff.reservation != r.UID {
			b.noteRebuff(g, r.UID, b.nodesAround(r))
			for _, seen := range g.rebuff.saw {
				g.rebuff.over = g.rebuff.over || seen.node.CreationTimestamp.After(r.Status.EndedAt.Time) // it came while nobody looked
			}
		}
		if g.rebuff.over = g.rebuff.over || b.helped(g); g.rebuff.over {
			g.rebuff.saw = nil
			return nil
		}
		return r
	}
	return nil
}

// helped reports whether what there is for a gang that has been rebuffed differs so from what there was that it might be accepted.
func (b *Book) helped(g *gang) bool {
	for name, now := range b.glimpses(g) {
		then, known := g.rebuff.saw[name]
		_, refused := g.rebuff.refused[name]
		if now.gpus > 0 && (!known || now.gpus > then.gpus || now.node.UID != then.node.UID || refused && differ(then.node, now.node)) {
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
func (b *Book) nodesAround(r *rqv1.Reservation) map[string]string {
	out, domains := map[string]string{}, b.domainsAround(r)
	for name := range b.nodes {
		if domains[b.fleet.DomainOf(name)] {
			out[name] = r.Status.Reason
		}
	}
	return out
}

// nobody is who may be cut for a gang that has been rebuffed.
func nobody(map[string]bool, time.Time) []resolver.Tenant { return nil }

// tellRebuff has the refusal of a gang that has been rebuffed say so.
func (b *Book) tellRebuff(g *gang) {
	if r := b.rebuffed(g); r != nil && g.refusal != nil && !strings.Contains(g.refusal.Message, r.Name) {
		told := *g.refusal
		told.Message += fmt.Sprintf("; nobody is cut for it again until a node that turned it down changes or more nodes serve it: "+
			"the cuts of Reservation %s were in vain", r.Name)
		g.refusal = &told
	}
}
