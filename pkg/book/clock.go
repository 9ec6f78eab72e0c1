package book

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// Forecast works out when the gang of a refused pod starts. When that is now, and others have to be cut for it, it decides
// which.
func (b *Book) Forecast(pod types.UID, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.roster.members[pod]; m != nil && m.gang.waits() {
		b.turns.makePromise(m.gang, m.pod, now)
	}
}

// Dues is signalled when the instant at which the next gang is due may have changed.
func (b *Book) Dues() <-chan struct{} { return b.agenda.dues }

// NextDue returns when the next gang that waits is due; false if none is.
func (b *Book) NextDue() (time.Time, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var next time.Time
	for _, g := range b.waiting.gangs {
		if b.agenda.ripens(g) && (next.IsZero() || g.dueAt().Before(next)) {
			next = g.dueAt()
		}
	}
	return next, !next.IsZero()
}

// Due wakes the gangs whose date has come, oldest Run first.
func (b *Book) Due(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, g := range b.waiting.gangs {
		if b.agenda.ripens(g) && !g.dueAt().After(now) {
			b.waiting.wake(g)
		}
	}
}

// RefreshPromises works promises out again that may have changed: those that are oldest, and so many at a time. Gangs that wait for what
// is stuck are planned around it. Others get their turn between two promises, each of which may take a tenth of a second.
func (b *Book) RefreshPromises(now time.Time, most int) {
	for _, run := range b.turns.stale(now, most) {
		b.turns.refresh(run, now)
	}
}

// Lapse ends what is kept for Runs that have not started again in time: they wait as any other from then on.
func (b *Book) Lapse(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, g := range b.roster.gangs {
		at, requeued := g.requeuedAt()
		if !b.roster.open || !requeued || g.requeue.lapsed || b.kept.goes(g, now) {
			continue
		}
		if now.Before(latest(g.requeue.until, at.Add(b.args.GangDeadline.Duration))) {
			continue
		}
		b.kept.dropRoom(g)
		g.kept, g.requeue.lapsed = nil, true
		b.mail.reconcile(keyOf(g.run))
	}
}

// GrowRuns decides which Runs grow now, and by how much: older Runs first, each by one step, where there is room and money that
// nobody else has been given or is going to need (R23). The Run controllers carry it out.
func (b *Book) GrowRuns(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.roster.open {
		return
	}
	var aspirants []*gang
	for g := range b.roster.classes.elastic {
		if g.shape == nil && g.full.StepPods > 0 {
			aspirants = append(aspirants, g)
		}
	}
	slices.SortFunc(aspirants, byAge)
	contested := sync.OnceValue(b.roster.contested) // all that wait are looked at for it
	var undo []func()
	tries := growthTries
	for _, g := range aspirants {
		was := g.growth.to
		g.growth.to = 0
		if g.growth.failed {
			g.growth.failed, g.growth.rest = false, now.Add(growthRest)
		}
		to := g.growing()
		switch {
		case to > 0:
		case tries == 0 || !b.growth.mayGrow(g, was, now) || contested()[g.full.Flavor]:
			continue
		default:
			tries--
			to = g.nextWidth()
		}
		places := b.growth.cohort(g, to, now)
		if g.growing() == 0 {
			b.growth.letGrow(g, was, to, places != nil, now)
		}
		undo = append(undo, b.growth.earmark(g, places, now)...)
	}
	for _, back := range undo {
		back()
	}
}

// Fill gives shards that wait the GPUs that are idle, older Runs first, and has those leave that are in somebody's way. It
// leaves GPUs alone that Runs which wait are about to be tried on.
func (b *Book) Fill(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.roster.open {
		return
	}
	for pod := range b.places.reclaimed {
		if b.seats.held[pod] == nil && b.roster.members[pod] == nil {
			delete(b.places.reclaimed, pod)
		}
	}
	for _, node := range slices.Sorted(maps.Keys(b.seats.shards)) {
		b.places.reclaim(node, rqv1.ClosedReclaimed, nil) // its GPUs have become fewer, or this process has just begun
	}
	forgive := now.Sub(b.fill.forgiven) >= forgiveness
	if forgive {
		b.fill.forgiven = now
	}
	wanting := b.roster.wanting()
	contested, idle := sync.OnceValue(b.roster.contested), sync.OnceValue(b.fill.idleNodes) // all that wait, and all nodes, are looked at for them
	for _, g := range wanting {
		if forgive {
			clear(g.excluded)
		}
		if (g.active.first() != nil || g.refusal != nil) && !contested()[g.full.Flavor] {
			b.fill.fillGang(g, idle()[g.full.Flavor], now)
		}
	}
	wanting = slices.DeleteFunc(wanting, func(g *gang) bool { return g.wants() == 0 || contested()[g.full.Flavor] })
	if len(wanting) > 0 {
		b.fill.allowShards(wanting, idle(), now)
	}
}
