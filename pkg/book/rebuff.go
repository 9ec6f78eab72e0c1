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
)

// rebuffs follows the activations that other scheduling rules have made vain.
type rebuffs struct {
	nodes   *nodeTable
	waiting *waitlist
	agenda  *agenda
}

// rebuffed returns the Reservation by which others were last cut for a gang in vain, because other scheduling rules
// kept it from its nodes; nil when there is none, when that is long ago, when one of the nodes that turned it down is
// another by now, or when more of them serve it.
func (j *rebuffs) rebuffed(g *gang, now time.Time) *rqv1.Reservation {
	var last *rqv1.Reservation
	rest := firstRest / 2
	for _, r := range j.agenda.reservations.ofRun(g.run.UID) {
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
		j.noteRebuff(g, last.UID, j.nodes.nodesAround(last))
		for name := range g.rebuff.served { // it came while nobody looked
			g.rebuff.moot = g.rebuff.moot || j.nodes.byName[name].CreationTimestamp.After(last.Status.EndedAt.Time)
		}
	}
	g.rebuff.moot = g.rebuff.moot || j.helped(g)
	if g.rebuff.moot {
		g.rebuff.refused, g.rebuff.served = nil, nil
		return nil
	}
	return last
}

// helped reports whether what there is for a gang that has been rebuffed differs so from what there was that it might
// be accepted.
func (j *rebuffs) helped(g *gang) bool {
	for name, then := range g.rebuff.refused {
		if now := j.nodes.byName[name]; now != nil && j.nodes.serves(now) && differ(then, now) {
			return true
		}
	}
	nodes := j.waiting.nodes[g.run.Spec.Resources.GPUType]
	if g.rebuff.seen == nodes {
		return false
	}
	g.rebuff.seen = nodes
	for name, now := range j.nodes.servedBy(g) {
		if then, served := g.rebuff.served[name]; !served || then.node != now.node || then.gpus < now.gpus {
			return true
		}
	}
	return false
}

// noteRebuff notes that an activation was in vain because nodes turned the gang down, and what there is for the gang
// now.
func (j *rebuffs) noteRebuff(g *gang, reservation types.UID, refused []string) {
	nodes := map[string]*corev1.Node{}
	for _, name := range refused {
		if node := j.nodes.byName[name]; node != nil {
			nodes[name] = node
		}
	}
	g.rebuff = rebuff{reservation: reservation, refused: nodes, served: j.nodes.servedBy(g),
		seen: j.waiting.nodes[g.run.Spec.Resources.GPUType]}
}

// tellRebuff has the refusal of a gang that has been rebuffed say so.
func (j *rebuffs) tellRebuff(g *gang, now time.Time) {
	if r := j.rebuffed(g, now); r != nil && g.refusal != nil && !strings.Contains(g.refusal.Message, r.Name) {
		told := *g.refusal
		told.Message += fmt.Sprintf("; the cuts of Reservation %s did not let it start, so no Run is cut for it for some "+
			"hours, unless a node that rejected it changes or nodes are added", r.Name)
		g.refusal = &told
		j.waiting.file(g)
	}
}

// differ reports whether a node is another in what scheduling rules look at.
func differ(x, y *corev1.Node) bool {
	return x.Spec.Unschedulable != y.Spec.Unschedulable || !maps.Equal(x.Labels, y.Labels) ||
		!equality.Semantic.DeepEqual(x.Spec.Taints, y.Spec.Taints) ||
		!equality.Semantic.DeepEqual(x.Status.Allocatable, y.Status.Allocatable)
}

// firstRest is how long nobody is cut again after the first activation of a Run that was in vain, and longestRest how
// long after any; each in between lasts twice as long as the one before.
const (
	firstRest   = 4 * time.Hour
	longestRest = 24 * time.Hour
)
