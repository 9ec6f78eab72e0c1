package book

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
)

// Activation is what has been decided for a Run whose turn has come, for its Reservation to publish (R21).
type Activation struct {
	At time.Time
	// Promise is what it is decided on, which the Reservation is to say first; nil when it does already.
	Promise   *forecast.Promise
	Conflicts []rqv1.Conflict
	Odds      string
	Nonce     [32]byte `json:"-"` // nobody may know it before it is revealed
	Draws     []rqv1.Draw
	Cuts      []rqv1.Cut
	// Failed says that the Run does not start after all: what was published is revealed, and nobody is cut. Cause and Why say
	// what has come between.
	Failed bool
	Cause  rqv1.CancelCause
	Why    string
}

// SetLotteryKey gives the book the key that nonces are made of.
func (b *Book) SetLotteryKey(key []byte) {
	b.mu.Lock()
	defer b.unlock()
	b.key = key
	for _, g := range b.waiting.gangs {
		b.reconcile(keyOf(g.run)) // its Reservation can commit now
		if g.activating() {
			b.again(g)
		}
	}
	b.signalDue()
}

// commitment returns what a Reservation publishes when it is made (R21); empty while the key is not known.
func (b *Book) commitment(reservation types.UID) string {
	if b.key == nil {
		return ""
	}
	return resolver.Commitment(resolver.Nonce(b.key, reservation))
}

// decide draws, if it must, and gives the gang its places: those that are free and those that are going to be. Nobody is told
// before the decision is published. Each decision has an instant of its own, as the API tells it, and is about what is held
// then. It reports false if the gang could not start after all.
func (b *Book) decide(g *gang, pod *corev1.Pod, now time.Time) bool {
	at := latest(now.Truncate(time.Microsecond), b.decided.Add(time.Microsecond))
	state, ask, refusal := b.future(g, pod, at)
	if refusal != nil {
		return false
	}
	p, _ := b.earliest(state, &ask)
	if p == nil || !p.Cuts || p.At.After(at) {
		return false
	}
	a := &Activation{At: at, Promise: p, Conflicts: p.Conflicts, Odds: p.Odds, Nonce: resolver.Nonce(b.key, g.reservation.UID)}
	decided, assignments, ok := forecast.Activate(state, ask, p.Slice.Domains, a.Conflicts, a.Nonce)
	if ok = ok && b.withinLimit(g, decided.Cuts, at); ok {
		b.decided, a.Draws, a.Cuts = at, decided.Draws, decided.Cuts
		b.activateGang(g, a, assignments, at)
	}
	return ok
}

func latest(x, y time.Time) time.Time {
	if x.After(y) {
		return x
	}
	return y
}

// resumeAll completes what has been published, in the order in which it was decided.
func (b *Book) resumeAll(now time.Time) {
	var published []*gang
	for _, g := range b.gangs {
		if g.run != nil && g.run.Status.Phase == rqv1.RunPending && g.complete() && g.activating() && g.reservation.Status.ActivatedAt != nil {
			published = append(published, g)
		}
	}
	slices.SortFunc(published, func(x, y *gang) int {
		return cmp.Or(x.reservation.Status.ActivatedAt.Compare(y.reservation.Status.ActivatedAt.Time), byAge(x, y))
	})
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
	if status.ActivatedAt == nil || status.Lottery == nil || b.key == nil && status.Lottery.Nonce == "" {
		return
	}
	a := &Activation{At: status.ActivatedAt.Time, Conflicts: status.ConflictSet, Odds: status.Lottery.Odds,
		Nonce: resolver.Nonce(b.key, g.reservation.UID), Draws: status.Lottery.Draws, Cuts: status.Cuts}
	state, ask, refusal := b.future(g, pod, now)
	var assignments []plan.Assignment
	switch {
	case refusal != nil:
	case status.Lottery.Nonce != "":
		g.stuck = b.stuckFor(g, a, now)
		assignments, refusal = b.completed(g, state, ask, b.leaving(a, now))
	case !b.committedTo(g):
		refusal = g.notYet("the key of lotteries has been replaced")
	default:
		// Whom the draw is about was fixed then, though they may have ended since, and others started.
		state.Candidates = func(domains map[string]bool, _ time.Time) []resolver.Candidate {
			return b.tenants(g, domains, a.At, latest(now, a.At))
		}
		decided, places, ok := forecast.Activate(state, ask, b.domainsAround(g.reservation), a.Conflicts, a.Nonce)
		if assignments = places; !ok {
			refusal = g.notYet("what was to be cut is gone")
		}
		a.Draws, a.Cuts = decided.Draws, decided.Cuts
	}
	if refusal != nil {
		b.fail(g, a, now)
		return
	}
	b.activateGang(g, a, assignments, now)
}

// aside returns what a gang asks for, away from the slices of other gangs whose turn has come and who do not run yet: what has
// been cut for them may be free before they have taken it.
func (b *Book) aside(g *gang, ask forecast.Ask) forecast.Ask {
	others, excluded := map[string]bool{}, ask.Excluded
	for _, other := range b.gangs {
		if other == g || !other.activating() || other.started() || other.reservation.Spec.IntendedSlice == nil {
			continue
		}
		for _, node := range other.reservation.Spec.IntendedSlice.Nodes {
			others[node] = true
		}
	}
	ask.Excluded = func(node string) bool { return others[node] || excluded != nil && excluded(node) }
	return ask
}

// domainsAround returns the fabric domains of a Reservation's slice.
func (b *Book) domainsAround(r *rqv1.Reservation) map[string]bool {
	out := map[string]bool{}
	if r.Spec.IntendedSlice == nil {
		return out
	}
	for _, node := range r.Spec.IntendedSlice.Nodes {
		if domain := b.fleet.DomainOf(node); domain != "" {
			out[domain] = true
		}
	}
	return out
}

// activateGang has a gang take its places, and wait there until those who are cut have left.
func (b *Book) activateGang(g *gang, a *Activation, assignments []plan.Assignment, now time.Time) {
	b.setPromise(g, nil)
	if g.activation = a; g.reservation.Status.Lottery.Nonce != "" {
		g.activation = nil // all of it is published
	}
	places := b.takePlaces(g, assignments, now)
	for _, pod := range b.victims(a) {
		if m := b.members[pod]; m != nil {
			m.awaited = g
		}
		if a.Promise != nil {
			b.held[pod].asked = time.Time{} // if it was to be cut before, that came to nothing
		}
		if !b.overstayed(pod, now) {
			b.held[pod].await(g)
		}
	}
	for pod, h := range b.held {
		if len(h.awaitedBy) > 0 && places[h.node] && !b.overstayed(pod, now) {
			h.await(g) // it leaves for another, who may have got a place elsewhere after a restart
		}
	}
	if g.awaiting == 0 {
		b.proceed(g)
	}
	b.reconcile(keyOf(g.run))
}

// whileLeaving is why a gang that has its places does not take them yet.
const whileLeaving = "waiting for those who are cut to leave"

// victims returns the pods that the cuts of an activation take, as far as they hold GPUs: also those that are gone and whose
// Leases are still open.
func (b *Book) victims(a *Activation) []types.UID {
	var out []types.UID
	for i := range a.Cuts {
		c := &a.Cuts[i]
		g := b.gangs[c.UID]
		if g != nil {
			for _, m := range slices.Concat(g.active.members, g.spares.members) {
				if m == nil || b.held[m.pod.UID] == nil {
					continue
				}
				if taken(g, m.part, c) && b.heldSince(m).Before(a.At) {
					out = append(out, m.pod.UID)
				}
			}
		}
		for _, l := range b.leases {
			if l.charge.Run == string(c.UID) && b.members[l.pod] == nil && taken(g, l.part, c) && l.charge.Start.Before(a.At) {
				out = append(out, l.pod)
			}
		}
	}
	return out
}

// heldSince returns when a member's Lease was opened; when its pod was made, as long as it has none.
func (b *Book) heldSince(m *member) time.Time {
	if l := b.leases[leaseName(m.pod)]; l != nil {
		return l.charge.Start
	}
	return m.pod.CreationTimestamp.Time
}

// taken reports whether a cut takes a part of a gang. A Run that has ended or is gone leaves all that it held.
func taken(g *gang, part rank.Part, c *rqv1.Cut) bool {
	if g == nil || g.run == nil || g.over() || g.shape != nil {
		return true
	}
	return g.full.Cuts(c, part)
}

// leaving returns what the victims of an activation still hold, and those that others wait for, who have their places by now,
// but for what is stuck.
func (b *Book) leaving(a *Activation, now time.Time) []resolver.Holding {
	pods := map[types.UID]bool{}
	for _, pod := range b.victims(a) {
		pods[pod] = true
	}
	var out []resolver.Holding
	for pod, h := range b.held {
		if !h.shard && (pods[pod] || len(h.awaitedBy) > 0) && !b.overstayed(pod, now) {
			out = append(out, resolver.Holding{Node: h.node, GPUs: h.gpus})
		}
	}
	return out
}

// proceed lets a gang whose places are free into the queue, and who leads those that have none: they have been held back too.
func (b *Book) proceed(g *gang) {
	for m := range g.all() {
		if m.stage == assigned {
			b.activate(m.pod)
		}
	}
	if g.complete() && g.leader() != nil {
		b.wake(g) // a spare that was made meanwhile
	}
}

// await has a gang wait until the holding is gone.
func (h *holding) await(g *gang) {
	if !slices.Contains(h.awaitedBy, g) {
		h.awaitedBy = append(h.awaitedBy, g)
		g.awaiting++
	}
}

// leaveOff has a gang not wait for anybody any more.
func (b *Book) leaveOff(g *gang) {
	if g.awaiting == 0 {
		return
	}
	g.awaiting = 0
	for _, h := range b.held {
		h.awaitedBy = slices.DeleteFunc(h.awaitedBy, func(other *gang) bool { return other == g })
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
	b.giveUpRoom(g)
	if g.restraint.limited {
		g.restraint = restraint{}
		for _, other := range b.waiting.gangs {
			if other.restraint.limited {
				other.restraint.until = time.Time{} // it may have waited for this one alone
			}
		}
		b.signalDue()
	}
	if g.promise != nil {
		b.setPromise(g, nil)
	}
	g.since, g.looked, g.activation, g.stuck = time.Time{}, time.Time{}, nil, nil
}

// doomed reports whether a member is cut for another gang.
func (m *member) doomed() bool {
	return m.awaited != nil && m.awaited.run != nil && (m.awaited.activation != nil || m.awaited.activating())
}

// awaited reports whether Runs still hold what the cuts of a Reservation take.
func (b *Book) awaited(r *rqv1.Reservation) bool {
	return r.Status.ActivatedAt != nil && len(b.victims(&Activation{At: r.Status.ActivatedAt.Time, Cuts: r.Status.Cuts})) > 0
}

// gone notes that a pod which gangs wait for holds nothing any more.
func (b *Book) gone(h *holding) {
	for _, g := range h.awaitedBy {
		if g.awaiting--; g.awaiting == 0 && g.run != nil {
			b.proceed(g)
		}
	}
	h.awaitedBy = nil
}
