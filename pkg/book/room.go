package book

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// room is what is kept for a gang that is planned again, for a while: nobody else is given it, and the gang itself is planned
// as if it were free.
type room struct {
	held  []types.UID
	until time.Time
}

// placesOf returns what a gang has been given and nothing else says yet.
func (g *gang) placesOf() []resolver.Holding {
	var out []resolver.Holding
	for m := range g.all() {
		if m.stage == assigned || m.stage == reserved {
			out = append(out, g.holding(m))
		}
	}
	return out
}

// keepFor keeps what is free of some places for a gang that has had them, until an instant.
func (b *Book) keepFor(g *gang, places []resolver.Holding, until time.Time) {
	b.giveUpRoom(g)
	g.room.until = until
	for i, p := range places {
		if node := b.nodes[p.Node]; node == nil || !b.serves(node) || b.freeOn(p.Node) < p.GPUs {
			continue
		}
		uid := types.UID(fmt.Sprintf("room/%s/%d", g.run.UID, i))
		b.hold(uid, p.Node, p.GPUs, func(h *holding) { h.vacant = true })
		g.room.held = append(g.room.held, uid)
	}
}

// lend has a gang be planned with the room that is kept for it. What it returns has the room kept again, or not, if the gang
// has its places by then, or is not going to be decided anew.
func (b *Book) lend(g *gang) (back func()) {
	if len(g.room.held) == 0 {
		return func() {}
	}
	for _, uid := range g.room.held {
		b.fleet.Give(b.held[uid].node, b.held[uid].gpus)
	}
	return func() {
		for _, uid := range g.room.held {
			b.fleet.Take(b.held[uid].node, b.held[uid].gpus)
		}
		if g.underWay() || g.vain() {
			b.giveUpRoom(g)
		}
	}
}

// vain reports whether the gang's activation has failed for want of nodes that accept it: nobody is cut for it anew.
func (g *gang) vain() bool {
	return g.activation != nil && g.activation.Cause == rqv1.CanceledNodesRejected
}

// giveUpRoom lets others have what was kept for a gang.
func (b *Book) giveUpRoom(g *gang) {
	for _, uid := range g.room.held {
		b.hold(uid, "", 0, func(h *holding) { h.vacant = false })
	}
	g.room = room{}
}

// roomOf returns how many GPUs are kept for a gang.
func (b *Book) roomOf(g *gang) int {
	gpus := 0
	for _, uid := range g.room.held {
		gpus += b.held[uid].gpus
	}
	return gpus
}
