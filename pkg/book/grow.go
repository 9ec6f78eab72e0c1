package book

import (
	"slices"
	"sync"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// growthRest is how long a gang that could not grow is left alone, and growthTries how many gangs are tried each time: there
// may be thousands that would like to grow.
const (
	growthRest  = 30 * time.Second
	growthTries = 32
)

// growth is what has been decided about making a gang that runs wider (R23).
type growth struct {
	// to is the width in GPUs that the gang is to grow to, until its status says so; 0 when it is not to.
	to int32
	// looked is the state of the world in which the gang was last found not to fit at its next width, and rest when it is
	// worth another look.
	looked int64
	rest   time.Time
	// failed says that a cohort was given up since the gang was last looked at.
	failed bool
}

// growing returns the width in GPUs that a gang is growing to by its status; 0 when it is not.
func (g *gang) growing() int32 {
	if g.shape == nil && g.started() && g.run.Status.Width != nil {
		return g.run.Status.Width.Growing
	}
	return 0
}

// grows reports whether what is to be planned of a gang is the cohort that it grows by: all else of it has its places.
func (g *gang) grows() bool {
	first := g.active.first()
	return g.growing() > 0 && (first == nil || first.joins())
}

// regard notes what has become of a gang's growth since it grew to a width. A cohort passes the barrier by itself; one that
// was given up leaves nothing behind.
func (b *Book) regard(g *gang, grew int32, edited bool) {
	to := g.growing()
	if edited {
		g.growth.looked, g.growth.rest = 0, time.Time{}
	}
	if to != grew && to > 0 {
		g.growth.to, g.committed = 0, false
	}
	if grew == 0 || to > 0 {
		return
	}
	g.growth.failed = g.started() && g.settled().GPUs() < int(grew)
	clear(g.excluded) // it may go there by the time at which it grows again
	if g.refusal != nil && g.refusal.Grow {
		g.refusal, g.woken = nil, false
		b.waiting.remove(g)
		if g.leader() != nil {
			b.wake(g) // spares may be missing besides
		}
	}
}

// Grow decides which Runs grow now, and by how much: older Runs first, each by one step, where there is room and money that
// nobody else has been given or is going to need (R23). The Run controllers carry it out.
func (b *Book) Grow(now time.Time) {
	b.mu.Lock()
	defer b.unlock()
	if !b.open {
		return
	}
	var aspirants []*gang
	for g := range b.classes.elastic {
		if g.shape == nil && g.full.StepPods > 0 {
			aspirants = append(aspirants, g)
		}
	}
	slices.SortFunc(aspirants, byAge)
	contested := sync.OnceValue(b.contested) // all that wait are looked at for it
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
		case tries == 0 || !b.mayGrow(g, was, now) || contested()[g.full.Flavor]:
			continue
		default:
			tries--
			to = g.nextWidth()
		}
		places := b.cohort(g, to, now)
		if g.growing() == 0 {
			b.letGrow(g, was, to, places != nil, now)
		}
		undo = append(undo, b.earmark(g, places, now)...)
	}
	for _, back := range undo {
		back()
	}
}

// contested returns the flavors whose room Runs that wait are about to be tried on, or have not said yet where they intend to
// be, and so do ranks that were lost. They come first.
func (b *Book) contested() map[string]bool {
	out := map[string]bool{}
	for _, g := range b.gangs {
		if (g.woken || g.reservation != nil) && g.run != nil && !out[g.full.Flavor] && g.contests() {
			out[g.full.Flavor] = true
		}
	}
	return out
}

// contests reports whether a Run is about to be tried, or has lost ranks that are, or has not said yet where it intends to be.
func (g *gang) contests() bool {
	if g.started() {
		return g.woken && !g.grows() && g.active.first() != nil
	}
	retried := g.woken && g.refusal != nil && g.leader() != nil
	unheard := g.reservation != nil && g.looked.IsZero() && !g.underWay()
	return retried || unheard
}

// mayGrow reports whether it is worth looking if a gang's next cohort fits. One for which that was decided before, and whose
// status does not say so yet, is looked at again.
func (b *Book) mayGrow(g *gang, was int32, now time.Time) bool {
	to := g.nextWidth()
	rests := now.Before(g.growth.rest) || g.growth.looked == b.state()
	return to > 0 && (was == to || !rests) && b.steady(g) && !b.isCut(g) && b.fleet.FreeOf(g.full.Flavor) >= g.full.StepPods*g.full.GPUsPerPod
}

// state counts what may let a gang grow that could not before.
func (b *Book) state() int64 { return b.waiting.epoch + b.vacated }

// letGrow lets a gang grow to a width if its cohort fits; otherwise it rests.
func (b *Book) letGrow(g *gang, was, to int32, fits bool, now time.Time) {
	if !fits {
		g.growth.looked, g.growth.rest = b.state(), now.Add(growthRest)
		return
	}
	if g.growth.to = to; was != to {
		b.reconcile(keyOf(g.run))
	}
}

// nextWidth returns the width in GPUs that is one step up, as long as the Run desires it; 0 when it does not.
func (g *gang) nextWidth() int32 {
	w, m := g.run.Status.Width, g.run.Spec.Malleable
	if w == nil || m == nil || w.Granted == 0 {
		return 0
	}
	if to := w.Granted + m.StepGPUs; to <= g.run.Spec.Desired() {
		return to
	}
	return 0
}

// steady reports whether a gang has exactly the active pods of its width, all of them bound to nodes that stand, and no spare that
// it had at a wider one.
func (b *Book) steady(g *gang) bool {
	return g.active.present == g.active.size && g.active.whole() && g.spares.present == g.spares.within && len(g.vacant) == 0 &&
		!slices.ContainsFunc(g.active.between(0, g.active.size), func(m *member) bool { return m == nil || m.stage != bound || m.doomed() || !b.stands(m.node) })
}

// isCut reports whether the activation of a Reservation cuts a gang.
func (b *Book) isCut(g *gang) bool {
	for _, cuts := range b.cuts {
		if slices.ContainsFunc(cuts, func(c rank.Cut) bool { return c.UID == g.run.UID }) {
			return true
		}
	}
	return false
}
