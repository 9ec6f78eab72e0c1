package book

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// Activation is what has been decided for a Run whose turn has come, for its Reservation to publish (R21).
type Activation struct {
	At        time.Time
	Conflicts []rqv1.Conflict
	Odds      string
	Nonce     [32]byte
	Draws     []rqv1.Draw
	Cuts      []rqv1.Cut
	// Failed says that the Run does not start after all: what was published is revealed, and nobody is cut.
	Failed bool
}

// SetLotteryKey gives the book the key that nonces are made of.
func (b *Book) SetLotteryKey(key []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.key = key
}

// Commitment returns what a Reservation publishes when it is made (R21); empty while the key is not known.
func (b *Book) Commitment(reservation types.UID) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.key == nil {
		return ""
	}
	return resolver.Commitment(resolver.Nonce(b.key, reservation))
}

// decide draws, if it must, and gives the gang its places: those that are free and those that are going to be. Nobody is told
// before the decision is published. It reports false if the gang could not start after all.
func (b *Book) decide(g *gang, p *forecast.Promise, state forecast.State, ask forecast.Ask, now time.Time) bool {
	a := &Activation{At: now, Conflicts: p.Conflicts, Odds: p.Odds, Nonce: resolver.Nonce(b.key, g.reservation.UID)}
	decided, assignments, ok := forecast.Activate(state, ask, p.Slice.Domains, a.Conflicts, a.Nonce)
	if ok {
		a.Draws, a.Cuts = decided.Draws, decided.Cuts
		b.activateGang(g, a, assignments, now)
	}
	return ok
}

// resumeAll completes what has been published, oldest Run first.
func (b *Book) resumeAll(now time.Time) {
	var published []*gang
	for _, g := range b.gangs {
		if g.run != nil && g.run.Status.Phase == rqv1.RunPending && g.complete() && g.activating() {
			published = append(published, g)
		}
	}
	slices.SortFunc(published, byAge)
	for _, g := range published {
		if lead := g.leader(); lead != nil {
			b.resume(g, lead.pod, now)
		}
	}
}

// activating reports whether the gang's turn has come and it has not ended.
func (g *gang) activating() bool {
	return g.reservation != nil && g.reservation.Status.State == rqv1.ReservationActivating
}

// resume completes what a predecessor of this process has published: the same draw, and the same cuts.
func (b *Book) resume(g *gang, pod *corev1.Pod, now time.Time) {
	status := &g.reservation.Status
	if status.ActivatedAt == nil || status.Lottery == nil || b.key == nil {
		return
	}
	a := &Activation{At: status.ActivatedAt.Time, Conflicts: status.ConflictSet, Odds: status.Lottery.Odds,
		Nonce: resolver.Nonce(b.key, g.reservation.UID), Draws: status.Lottery.Draws, Cuts: status.Cuts}
	state, ask, refusal := b.future(g, pod, now)
	var assignments []plan.Assignment
	switch {
	case refusal != nil:
	case status.Lottery.Nonce != "":
		assignments, refusal = forecast.Complete(state, ask, b.leaving(a))
	default:
		decided, places, ok := forecast.Activate(state, ask, b.domainsAround(g.reservation), a.Conflicts, a.Nonce)
		if assignments = places; !ok {
			refusal = g.notYet("what was to be cut is gone")
		}
		a.Draws, a.Cuts = decided.Draws, decided.Cuts
	}
	if refusal != nil {
		a.Failed = true
		g.activation, g.since = a, now
		b.reconcile(client(g.run))
		return
	}
	b.activateGang(g, a, assignments, now)
}

// domainsAround returns the fabric domains of a Reservation's slice.
func (b *Book) domainsAround(r *rqv1.Reservation) map[string]bool {
	out := map[string]bool{}
	if r.Spec.IntendedSlice == nil {
		return out
	}
	for _, node := range r.Spec.IntendedSlice.Nodes {
		if domain, _, ok := b.fleet.Domain(node); ok {
			out[domain] = true
		}
	}
	return out
}

// activateGang has a gang take its places, and wait there until those who are cut have left.
func (b *Book) activateGang(g *gang, a *Activation, assignments []plan.Assignment, now time.Time) {
	b.setPromise(g, nil)
	b.waiting.remove(g)
	if g.activation = a; g.reservation.Status.Lottery.Nonce != "" {
		g.activation = nil // all of it is published
	}
	g.refusal, g.planned, g.committed, g.deadline = nil, true, false, time.Time{}
	b.resize(g, g.narrowest())
	b.assume(g, assignments, now)
	var pods []types.UID
	for _, m := range b.victims(a) {
		m.awaited = g
		pods = append(pods, m.pod.UID)
	}
	for _, l := range b.unclosed(a) {
		pods = append(pods, l.pod)
	}
	for _, pod := range pods {
		if h := b.held[pod]; h != nil && h.awaitedBy == nil {
			h.awaitedBy = g
			g.awaiting++
		}
	}
	if g.awaiting == 0 {
		b.proceed(g)
	}
	b.reconcile(client(g.run))
}

// whileLeaving is why a gang that has its places does not take them yet.
const whileLeaving = "waiting for those who are cut to leave"

// victims returns the members that the cuts of an activation take, as far as they hold GPUs.
func (b *Book) victims(a *Activation) []*member {
	var out []*member
	for i := range a.Cuts {
		g := b.gangs[a.Cuts[i].UID]
		if g == nil {
			continue
		}
		for m := range g.everyone() {
			if m.placed() && g.loses(m.part, &a.Cuts[i]) && b.heldBefore(m, a.At) {
				out = append(out, m)
			}
		}
	}
	return out
}

// heldBefore reports whether a member has what it holds from before an instant. What has no Lease yet is a Run's that waits
// since, or a later pod's, unless the Run runs and its pod is old enough.
func (b *Book) heldBefore(m *member, at time.Time) bool {
	if l := b.leases[leaseName(m.pod)]; l != nil {
		return l.charge.Start.Before(at)
	}
	return m.gang.started() && !m.pod.CreationTimestamp.After(at)
}

// unclosed returns the open Leases that the cuts of an activation take and whose pods have ended or are gone: they hold
// their GPUs until they are closed.
func (b *Book) unclosed(a *Activation) []*lease {
	var out []*lease
	for _, l := range b.leases {
		m := b.members[l.pod]
		if m != nil && m.placed() || !l.charge.Start.Before(a.At) {
			continue
		}
		if slices.ContainsFunc(a.Cuts, func(c rqv1.Cut) bool {
			g := b.gangs[c.UID]
			return string(c.UID) == l.charge.Run && (g == nil || g.loses(l.part, &c))
		}) {
			out = append(out, l)
		}
	}
	return out
}

// loses reports whether a cut of a gang's Run takes one of its parts. A Run that has ended loses them all.
func (g *gang) loses(part Part, c *rqv1.Cut) bool {
	switch {
	case c.Action == rqv1.CutDropSpare:
		return part.Spare && slices.Contains(c.Spares, int32(part.Index))
	case c.Action == rqv1.CutShrink && g.full.GPUsPerPod > 0:
		left := g.full.At(int(*c.Width) / g.full.GPUsPerPod)
		if part.Spare {
			return part.Index >= left.Spares()
		}
		return part.Index >= left.Pods()
	}
	return true
}

// leaving returns what the victims of an activation still hold.
func (b *Book) leaving(a *Activation) []resolver.Holding {
	var out []resolver.Holding
	for _, m := range b.victims(a) {
		if h := b.held[m.pod.UID]; h != nil {
			out = append(out, resolver.Holding{Node: h.node, GPUs: h.gpus})
		}
	}
	for _, l := range b.unclosed(a) {
		out = append(out, resolver.Holding{Node: l.node, GPUs: l.charge.GPUs})
	}
	return out
}

// proceed lets a gang whose places are free into the queue.
func (b *Book) proceed(g *gang) {
	if m := g.active.members[0]; m != nil {
		b.activate(m.pod)
	}
}

// leaveOff has a gang not wait for anybody any more.
func (b *Book) leaveOff(g *gang) {
	if g.awaiting == 0 {
		return
	}
	g.awaiting = 0
	for _, h := range b.held {
		if h.awaitedBy == g {
			h.awaitedBy = nil
		}
	}
}

// adopt has a gang that waits know its Reservation, and one that does not wait forget its promise.
func (b *Book) adopt(g *gang) {
	if g.run.Status.Phase != rqv1.RunPending && g.run.Status.Phase != "" {
		b.withdraw(g)
	} else if g.reservation == nil {
		if r := b.reservations.current(g.run.UID); r != nil {
			b.reserve(g, r)
		}
	}
}

// withdraw takes back what was promised to a gang: it has started, or it is gone.
func (b *Book) withdraw(g *gang) {
	if g.promise != nil {
		b.setPromise(g, nil)
	}
	g.since, g.looked, g.activation = time.Time{}, time.Time{}, nil
}

// doomed reports whether a member is cut for another gang.
func (m *member) doomed() bool {
	return m.awaited != nil && m.awaited.run != nil && (m.awaited.activation != nil || m.awaited.activating())
}

// Outstanding reports whether a Run still holds what a cut of a Reservation takes.
func (b *Book) Outstanding(r *rqv1.Reservation, c *rqv1.Cut) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := &Activation{At: r.Status.ActivatedAt.Time, Cuts: []rqv1.Cut{*c}}
	return len(b.victims(a)) > 0 || len(b.unclosed(a)) > 0
}

// gone notes that a pod which a gang waits for holds nothing any more.
func (b *Book) gone(h *holding) {
	g := h.awaitedBy
	if h.awaitedBy = nil; g == nil || g.awaiting == 0 {
		return
	}
	if g.awaiting--; g.awaiting == 0 && g.run != nil {
		b.proceed(g)
	}
}
