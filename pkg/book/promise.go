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

// prospect is when a gang that waits is going to start.
type prospect struct {
	// since is when the gang was first refused: others may be cut for it from a lead after that on (R17).
	since time.Time
	// promise is when and where it starts; nil when it has no date. looked is when that was worked out, and seen the epoch.
	promise *forecast.Promise
	looked  time.Time
	seen    int64
	// reservation is the gang's own as the API has it; nil when there is none that has not ended.
	reservation *rqv1.Reservation
	// activation is what has been decided at the gang's turn and waits to be published; nil when nothing is.
	activation *Activation
	// restraint is what holds its activation back (R36).
	restraint restraint
	// awaiting is how many pods are still to end before the gang, which has its places, may take them.
	awaiting int
	// freeBy is when those are to be gone whom it waits for although nobody was cut for it.
	freeBy time.Time
	// turn is when others could be cut for the gang that is promised to start without.
	turn time.Time
	// stuck are the pods that were to make room for the gang and have not gone (R37).
	stuck []Stuck
	// rebuff is the last activation that other scheduling rules have made vain, if any.
	rebuff rebuff
	// room is what is kept for the gang while it is planned again.
	room room
	// unpaid says that nobody can pay for the gang, so that it has no pods, and asked that somebody may by now.
	unpaid, asked bool
}

// Promise works out when the gang of a refused pod starts. When that is now, and others have to be cut for it, it decides
// which.
func (b *Book) Promise(pod types.UID, now time.Time) {
	b.mu.Lock()
	defer b.unlock()
	if m := b.members[pod]; m != nil && m.gang.waits() {
		b.promise(m.gang, m.pod, now)
	}
}

// waits reports whether the gang has been refused a start.
func (g *gang) waits() bool {
	return g.run != nil && !g.opportunistic() && g.run.Status.Phase == rqv1.RunPending && g.refusal != nil && g.shape == nil && (g.complete() || g.unpaid)
}

func (b *Book) promise(g *gang, pod *corev1.Pod, now time.Time) {
	defer b.lend(g)()
	b.openRoom(g)
	defer b.closeRoom(g)
	switch {
	case g.activation != nil:
		return // it is being published
	case g.activating():
		b.resume(g, pod, now)
		return
	case b.dateless(g, now):
		return
	case g.since.IsZero():
		g.since = now
	}
	g.looked, g.seen, g.woken = now, b.waiting.epoch, false
	var p *forecast.Promise
	state, ask, refusal := b.future(g, pod, now)
	if refusal == nil {
		p, refusal = b.earliest(state, &ask)
	}
	if p == nil && refusal != nil && refusal.Reason == g.refusal.Reason {
		refusal.Without(g.refusal.Rejected)
		g.refusal = refusal
	}
	b.tellRebuff(g, now)
	if p != nil && p.Cuts && !p.At.After(now) && b.committedTo(g) && !g.unpaid {
		if !b.braked(g, now) && b.decide(g, pod, now) {
			return
		}
		if b.braked(g, now) {
			b.stand(g, p, now)
			return
		}
		g.since, state.NotBefore = now, now.Add(b.args.ReservationLead.Duration) // its turn comes again
		p, _ = forecast.Earliest(state, ask)
	}
	g.turn = time.Time{}
	switch b.setPromise(g, p); {
	case p == nil || p.Cuts || g.unpaid:
	case now.Before(state.NotBefore):
		g.turn = state.NotBefore
	default:
		b.takeLeaving(g, p, state, ask, now)
	}
}

// dueAt returns when something is to be done about a gang's promise: on its date or, if that rests on what leaves by itself, when
// its turn comes, from which on nobody younger takes that. One whose cuts are held back waits for as long.
func (g *gang) dueAt() time.Time {
	if !g.turn.IsZero() && g.turn.Before(g.promise.At) {
		return g.turn
	}
	return latest(g.promise.At, g.restraint.until)
}

// committedTo reports whether the gang's Reservation has published its commitment, without which nobody may be drawn, and
// whether the book's key keeps it.
func (b *Book) committedTo(g *gang) bool {
	r := g.reservation
	return r != nil && b.key != nil && r.Status.Lottery != nil && r.Status.Lottery.Commitment == resolver.Commitment(resolver.Nonce(b.key, r.UID))
}

// setPromise replaces a gang's promise. Those whose risk it changes are looked at.
func (b *Book) setPromise(g *gang, p *forecast.Promise) {
	concerned := map[types.NamespacedName]bool{}
	old := g.promise
	if old != nil {
		if p == nil || !slices.Equal(old.Nodes, p.Nodes) {
			b.vacated++
		}
		for _, held := range old.Nodes {
			b.intended[held.Node] = slices.DeleteFunc(b.intended[held.Node], func(other *gang) bool { return other == g })
			if len(b.intended[held.Node]) == 0 {
				delete(b.intended, held.Node)
			}
		}
		b.threaten(g, old, concerned, false)
	}
	g.promise = p
	if p != nil {
		for _, held := range p.Nodes {
			b.intended[held.Node] = append(b.intended[held.Node], g)
		}
		b.threaten(g, p, concerned, true)
	}
	if old == nil || p == nil || !old.At.Equal(p.At) || !slices.Equal(old.Conflicts, p.Conflicts) {
		for run := range concerned {
			b.reconcile(run)
		}
	}
	if g.run != nil {
		b.reconcile(keyOf(g.run))
	}
	b.signalDue()
}

// threaten notes which Runs a promise may cut, or that it no longer does.
func (b *Book) threaten(g *gang, p *forecast.Promise, concerned map[types.NamespacedName]bool, does bool) {
	for i := range p.Conflicts {
		run := named(p.Conflicts[i].Run)
		concerned[run] = true
		if b.threats[run] == nil {
			b.threats[run] = map[*gang]bool{}
		}
		if b.threats[run][g] = true; !does {
			delete(b.threats[run], g)
		}
		if len(b.threats[run]) == 0 {
			delete(b.threats, run)
		}
	}
}

// outOfTheWay returns a test for the nodes that a gang's pods had better not use: those excluded anyway, and those on which they
// would be in the way of a Reservation (R18). A gang that is over in time is in nobody's way.
func (b *Book) outOfTheWay(g *gang, excluded func(string) bool, now time.Time) func(string) bool {
	switch {
	case g.grows():
		return b.unintended(excluded, now)
	case len(b.intended) == 0:
		return excluded
	}
	over := g.run.Spec.Until(now)
	return func(node string) bool {
		return excluded != nil && excluded(node) || slices.ContainsFunc(b.intended[node], func(other *gang) bool {
			return other != g && (over.IsZero() || over.After(other.promise.At))
		})
	}
}

// placeAside plans a gang where no Reservation intends to be, and anywhere when it does not fit there, unless the gang only
// grows.
func (b *Book) placeAside(g *gang, d plan.Demand, claim plan.Claim, missing []plan.Missing, excluded func(string) bool, now time.Time) ([]plan.Assignment, *plan.Refusal) {
	assignments, refusal := plan.Gang(b.fleet, b.accounts, d, claim, missing, b.outOfTheWay(g, excluded, now), now)
	if refusal == nil || g.grows() || len(b.intended) == 0 {
		return assignments, refusal
	}
	return plan.Gang(b.fleet, b.accounts, d, claim, missing, excluded, now)
}

// Dues is signalled when the instant at which the next gang is due may have changed.
func (b *Book) Dues() <-chan struct{} { return b.dues }

func (b *Book) signalDue() {
	select {
	case b.dues <- struct{}{}:
	default:
	}
}

// NextDue returns when the next gang that waits is due; false if none is.
func (b *Book) NextDue() (time.Time, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var next time.Time
	for _, g := range b.waiting.gangs {
		if b.ripens(g) && (next.IsZero() || g.dueAt().Before(next)) {
			next = g.dueAt()
		}
	}
	return next, !next.IsZero()
}

// ripens reports whether something is to be done when the gang's date has come.
func (b *Book) ripens(g *gang) bool {
	return g.promise != nil && !g.woken && !(g.unpaid && g.asked) && g.activation == nil && g.waits() &&
		(!g.promise.Cuts || b.committedTo(g) && b.brake.Says() == "")
}

// Due wakes the gangs whose date has come, oldest Run first.
func (b *Book) Due(now time.Time) {
	b.mu.Lock()
	defer b.unlock()
	for _, g := range b.waiting.gangs {
		if b.ripens(g) && !g.dueAt().After(now) {
			b.wake(g)
		}
	}
}

// refreshed is how old a promise may grow while nothing has improved that would change it.
const refreshed = 30 * time.Second

// Refresh works promises out again that may have changed: those that are oldest, and so many at a time. Gangs that wait for what
// is stuck are planned around it. Others get their turn between two promises, each of which may take a tenth of a second.
func (b *Book) Refresh(now time.Time, most int) {
	for _, run := range b.stale(now, most) {
		b.refresh(run, now)
	}
}

// stale returns the Runs whose promises are the oldest of those to be worked out again.
func (b *Book) stale(now time.Time, most int) []types.UID {
	b.mu.Lock()
	defer b.unlock()
	b.goRound(now)
	var stale []*gang
	for _, g := range b.waiting.gangs {
		if g.unpaid && !g.asked && b.richer(g) {
			b.stirred = true // those that were woken before it have not used what there is
		}
		if b.outdated(g, now) {
			stale = append(stale, g)
		}
	}
	slices.SortStableFunc(stale, func(x, y *gang) int { return x.looked.Compare(y.looked) })
	var runs []types.UID
	for _, g := range stale[:min(most, len(stale))] {
		runs = append(runs, g.run.UID)
	}
	return runs
}

// outdated reports whether what a gang is promised may have changed since it was worked out.
func (b *Book) outdated(g *gang, now time.Time) bool {
	return g.waits() && !g.woken && g.activation == nil && !g.looked.IsZero() && (g.seen < b.waiting.epoch || now.Sub(g.looked) >= refreshed)
}

func (b *Book) refresh(run types.UID, now time.Time) {
	b.mu.Lock()
	defer b.unlock()
	g := b.gangs[run]
	if g == nil || !b.outdated(g, now) {
		return
	}
	if pod := g.sample(); pod != nil {
		b.promise(g, pod, now)
	}
}
