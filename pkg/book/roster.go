package book

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// roster is the gangs that there are and their pods.
type roster struct {
	gangs  map[types.UID]*gang // by Run
	living map[*gang]bool      // but for those at rest
	runs   map[types.NamespacedName]types.UID
	// leasesOf is how many Leases there are of each Run, with those that are being written.
	leasesOf map[types.UID]int
	members  map[types.UID]*member // by pod
	classes  classes
	args     *config.Args
	// priorities order the Runs of one owner.
	priorities priorities
	turns      map[string]*quotaTurn // by namespace
	// bereft are the flavors of which nobody is given GPUs until lost ranks have theirs.
	bereft map[string]bool
	// asking are the Runs about whose gangs other scheduling rules are being asked, or were.
	asking map[types.UID]bool
	// early are the pods that the scheduling queue has asked about before they were known.
	early   map[types.UID]bool
	reading bool      // the ledger is being read, or has been
	open    bool      // the ledger has been read and this process decides
	began   time.Time // when it was first begun to be read
}

// classes are the gangs of the few kinds that something is looked for every second, so that nobody need go through the
// thousands that only wait, or have ended.
type classes struct {
	// elastic are malleable Runs that run, and sweeps the opportunistic ones.
	elastic, sweeps map[*gang]bool
	// requeued are those that have lost a node and wait again, and roomy those for which room is kept while they are
	// planned again.
	requeued, roomy map[*gang]bool
	// theirs are those that run and whose pods others make.
	theirs map[*gang]bool
	// suspended are those whose Runs are.
	suspended map[*gang]bool
	// turnedBack are those whose pods the API server has not taken, and mustering those whose pods are being made.
	turnedBack, mustering map[*gang]bool
	// awaiting are those that wait for nodes of their ranks to be in service again.
	awaiting map[*gang]bool
	// resting are those that have held places in vain, and hold none again for a while.
	resting map[*gang]bool
}

func newClasses() classes {
	return classes{elastic: map[*gang]bool{}, sweeps: map[*gang]bool{}, theirs: map[*gang]bool{},
		suspended: map[*gang]bool{},
		requeued:  map[*gang]bool{}, roomy: map[*gang]bool{}, turnedBack: map[*gang]bool{}, mustering: map[*gang]bool{},
		resting: map[*gang]bool{}, awaiting: map[*gang]bool{}}
}

// note puts a gang where its Run belongs, which has changed.
func (c *classes) note(g *gang) {
	put := func(class map[*gang]bool, in bool) {
		if in {
			class[g] = true
		} else {
			delete(class, g)
		}
	}
	put(c.suspended, g.suspended())
	put(c.elastic, g.started() && g.run.Spec.Malleable != nil && !g.suspended())
	put(c.theirs, g.late())
	if !g.late() {
		g.lapses = nil
	}
	if !g.started() {
		delete(c.awaiting, g)
	}
	put(c.sweeps, g.opportunistic() && !g.over() && !g.suspended())
	_, requeued := g.requeuedAt()
	put(c.requeued, requeued)
	if !g.mayRest() {
		delete(c.resting, g)
		g.restsTill = time.Time{} // a rest that outlives a start is begun again if the gang waits again
	}
}

func (r *roster) gangOf(run types.UID) *gang {
	g := r.gangs[run]
	if g == nil {
		g = &gang{turnings: turnings{excluded: map[string]string{}}, took: map[int]bool{},
			notice: r.args.NoticePeriod.Duration}
		r.gangs[run], r.living[g] = g, true
	}
	return g
}

// apart is how far the API server's clock may be ahead of this process's when it is asked which of two came first.
const apart = 5 * time.Second

// reads notes that the ledger is read by a process that leads: nobody else has decided since it first was.
func (r *roster) reads(now time.Time) {
	if !r.reading {
		r.reading, r.began = true, now
	}
}

// mayHaveLeases reports whether a Run that has not been seen before may have had Leases that the book does not know of:
// they may be of before this process led, and the Run's name have been unknown as they were read.
func (r *roster) mayHaveLeases(run *rqv1.Run) bool {
	return r.reading && run.CreationTimestamp.Time.Before(r.began.Add(apart))
}

func (r *roster) forgetIfEmpty(run types.UID, g *gang) {
	if g.run == nil && g.active.present == 0 && g.spares.present == 0 {
		delete(r.gangs, run)
		delete(r.living, g)
	}
}

// wanting returns the gangs of shards that take what is idle, older Runs first.
func (r *roster) wanting() []*gang {
	var out []*gang
	for g := range r.classes.sweeps {
		if g.shape == nil && !g.unpaid && !g.over() && g.run.DeletionTimestamp == nil {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, byAge)
	return out
}

// contested returns the flavors whose room Runs that wait are about to be tried on, or have not said yet where they
// intend to be, and so do ranks that were lost. They come first.
func (r *roster) contested() map[string]bool {
	out := maps.Clone(r.bereft)
	for g := range r.living {
		if (g.woken || g.reservation != nil) && g.run != nil && !out[g.full.Flavor] && g.contests() {
			out[g.full.Flavor] = true
		}
	}
	return out
}

// inQueue returns where a pod stands in the scheduling queue: at its gang's place and by its index there. A pod that is
// not a Run's stands by its own age.
func (r *roster) inQueue(pod *corev1.Pod) (spot, int) {
	m := r.members[pod.UID]
	switch {
	case m == nil || m.gang.run == nil:
		return spot{pod.CreationTimestamp.Time, pod.Namespace, pod.Name}, 0
	case m.part.Spare:
		return m.gang.place, m.part.Index + rank.MaxPods // after the active pods
	}
	return m.gang.place, m.part.Index
}
