package book

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/plan"
)

// isUnpaid reports whether nobody can pay for a Run that waits and has no pod: then it gets none (R32). Its refusal and its date are
// worked out without, and it is asked about again when somebody may be able to pay, not before.
func (b *Book) isUnpaid(g *gang, now time.Time) bool {
	unpaid := b.goesUnpaid(g, now)
	if !unpaid && g.opportunistic() && g.shape == nil && g.shards == 0 && !g.over() {
		b.allowShards(b.wanting(), b.idleNodes(), now) // it is new
	}
	return unpaid
}

func (b *Book) goesUnpaid(g *gang, now time.Time) bool {
	switch {
	case !g.unmade():
		if g.unpaid && g.opportunistic() && g.shape == nil {
			b.waiting.remove(g) // Fill looks after it
		}
		g.unpaid, g.asked = false, false
		return false
	case g.unpaid && !g.asked:
		return true
	}
	before := g.unpaid
	g.asked = false
	refusal := b.unpaid(g, now)
	if g.unpaid = refusal != nil; !g.unpaid {
		b.waiting.remove(g)
		g.refusal = nil
		if g.promise != nil {
			b.setPromise(g, nil) // it is tried once it has its pods, and until then keeps others from nothing
		}
		return false
	}
	b.stirred = b.stirred || before // others were not woken for its sake
	g.refusal, g.tried = refusal, b.waiting.epoch
	b.waiting.add(g)
	if !g.opportunistic() { // which has no date
		b.promise(g, podOf(g.run), now)
	}
	return true
}

// unpaid says why nobody can pay for a gang that has no pod, at its narrowest: a shard, of an opportunistic Run. It is nil when
// somebody can.
func (b *Book) unpaid(g *gang, now time.Time) *plan.Refusal {
	if g.opportunistic() {
		if _, refusal := plan.Fill(b.accounts, g.full, b.claim(g, nil), []int{0}, nil, now); refusal.AboutMoney() {
			return refusal
		}
		return nil
	}
	least := g.full.Least()
	return plan.Prepare(b.accounts, least, b.claim(g, nil), everyPod(least), b.rejected(g, podOf(g.run)), now).Unpaid(b.fleet)
}

// unmade reports whether a Run waits for its start and has no pod, nor anything that is kept for one.
func (g *gang) unmade() bool {
	if g.run == nil || g.shape != nil || g.run.Status.Phase != rqv1.RunPending || g.run.DeletionTimestamp != nil ||
		g.active.present > 0 || g.spares.present > 0 || len(g.vacant) > 0 || g.keepsRoom() || g.activation != nil || g.activating() {
		return false
	}
	for _, l := range g.latest {
		if l.reason == "" {
			return false // what it held before is still charged to it
		}
	}
	return true
}

// sample returns a pod by which the nodes are judged that the gang's pods may use: the leader's, or the template's while it has
// none; nil when all pods are placed.
func (g *gang) sample() *corev1.Pod {
	if lead := g.leader(); lead != nil {
		return lead.pod
	}
	if g.unpaid {
		return podOf(g.run)
	}
	return nil
}
