package book

import (
	"cmp"
	"fmt"
	"sort"
	"time"

	"k8s.io/utils/ptr"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// trials plans Runs that have not been submitted, or are suspended.
type trials struct {
	accounts *budget.Accounts
	fleet    *topology.Fleet
	mu       *guard
	mail     *mailbox
	nodes    *nodeTable
	roster   *roster
	waiting  *waitlist
	future   *horizon
	starts   *starter
	fill     *filler

	turn int // counts how often it was asked whose start is worked out next
	// foreseen is when a forecast of a suspended Run was last worked out, by namespace.
	foreseen map[string]time.Time
}

// tryOut plans a Run as if it had just been submitted, at the widest width that fits.
func (q *trials) tryOut(run *rqv1.Run, now time.Time) ([]plan.Assignment, *gang, *plan.Refusal) {
	g := q.newcomer(run, now)
	if g.shape != nil {
		return nil, g, g.shape
	}
	claim, rejected := q.future.agenda.debts.claim(g, nil, now), q.nodes.rejected(g, podOf(run))
	fits := func(width int) ([]plan.Assignment, *plan.Refusal) {
		d := g.full.At(width)
		return q.starts.placeAside(g, d, claim, d.EveryPod(), rejected, now)
	}
	width, places, refusal := g.full.Widest(g.full.LeastPods, g.full.Pods(), fits)
	g.demand = g.full.At(width)
	if refusal != nil {
		q.nodes.blame(g, podOf(run), refusal, now, func(rejected func(string) bool) bool {
			d := g.full.Least()
			d.Beside = nil
			return plan.Fits(q.fleet, q.accounts, d, claim, d.EveryPod(), rejected, now)
		})
		least := g.full.Least()
		refusal.Bound(plan.LongestThatFits(q.fleet, q.accounts, least, claim, least.EveryPod(), rejected, now))
	}
	return places, g, refusal
}

// newcomer returns the gang of a Run that has just been submitted.
func (q *trials) newcomer(run *rqv1.Run, now time.Time) *gang {
	g := &gang{run: run, turnings: turnings{excluded: map[string]string{}}, prospect: prospect{since: now},
		notice: q.starts.args.NoticePeriod.Duration}
	g.shapedFor.fleet = q.fleet.Whole(run.Spec.Resources.GPUType)
	g.full, g.shape = plan.DemandOf(&run.Spec, q.nodes.podGPUs(podOf(run)), g.shapedFor.fleet, q.nodes.payers(now))
	if mistaken := q.nodes.mistaken(podOf(run), g.full); mistaken != nil {
		g.shape = mistaken
	}
	g.full.Beside = q.nodes.kinds.besideGPUs(podOf(run))
	g.demand, g.own = g.full, g.placeOnceResumed(now)
	g.place = g.own
	return g
}

// placeOnceResumed is the place that the Run of a gang would have if it were resumed now, where it is suspended (R39).
func (g *gang) placeOnceResumed(now time.Time) spot {
	own := g.byRecord()
	if from, suspended := g.run.SuspendedSince(); suspended && now.After(from) {
		return g.placeAt(own.since.Add(now.Sub(from)))
	}
	return own
}

// fillWith says how many shards of an opportunistic Run would run if it were submitted now (R15).
func (q *trials) fillWith(run *rqv1.Run, now time.Time) Outlook {
	g := q.newcomer(run, now)
	if g.shape != nil {
		return Outlook{At: now, Refusal: g.shape}
	}
	places, refusal := plan.Fill(q.accounts, g.demand, q.future.agenda.debts.claim(g, nil, now), indexes(g.demand.Pods()),
		q.fill.rooms(g, podOf(run), g.full.Beside, q.fill.idleNodes()[g.full.Flavor], now), now)
	return Outlook{At: now, GPUs: len(places) * g.demand.GPUsPerPod, GPUsPerPod: g.demand.GPUsPerPod, Places: places,
		Refusal: refusal, Remarks: q.remarks(g)}
}

// changes looks for single changes to a Run that would make it start now: fewer GPUs, no spares, another type. What
// would have it paid for is the advice on its refusal.
func (q *trials) changes(g *gang, now time.Time) []Change {
	var out []Change
	run := g.run
	try := func(what string, edit func(*rqv1.RunSpec)) {
		edited := run.DeepCopy()
		edit(&edited.Spec)
		_, g, refusal := q.tryOut(edited, now)
		if refusal == nil {
			out = append(out, Change{What: what, GPUs: g.demand.GPUs()})
		}
	}
	if total := q.mostGPUs(g, now); total > 0 {
		try(fmt.Sprintf("resources.totalGPUs: %d", total), func(s *rqv1.RunSpec) {
			s.Resources.TotalGPUs, s.Malleable = total, nil
		})
	}
	if cmp.Or(ptr.Deref(run.Spec.Spares, 0), ptr.Deref(run.Spec.SparesPerGroup, 0)) > 0 {
		try("no spares", func(s *rqv1.RunSpec) { s.Spares, s.SparesPerGroup = nil, nil })
	}
	for _, flavor := range q.fleet.Flavors() {
		if flavor != run.Spec.Resources.GPUType {
			try("resources.gpuType: "+flavor, func(s *rqv1.RunSpec) { s.Resources.GPUType = flavor })
		}
	}
	return out
}

// mostGPUs returns the most GPUs that a Run of fewer than it asks for would start with now, in whole groups or pods; 0
// when not even one would.
func (q *trials) mostGPUs(g *gang, now time.Time) int32 {
	unit := int32(1)
	if l := g.run.Spec.Locality; l != nil && l.GroupGPUs != nil {
		unit = *l.GroupGPUs
	} else if g.shape == nil {
		unit = int32(g.full.GPUsPerPod)
	}
	units := sort.Search(int((g.run.Spec.Resources.TotalGPUs-1)/unit), func(i int) bool {
		edited := g.run.DeepCopy()
		edited.Spec.Resources.TotalGPUs, edited.Spec.Malleable = int32(i+1)*unit, nil
		_, _, refusal := q.tryOut(edited, now)
		return refusal != nil
	})
	return int32(units) * unit
}

// advise adds to the refusal of a Run that waits who was asked to pay and what would help, once for each refusal.
func (q *trials) advise(g *gang, now time.Time) {
	r := g.refusal
	if r == nil || r.Advice != nil || g.shape != nil || r.Reason == plan.NotYet || g.run.Status.Phase != rqv1.RunPending {
		return
	}
	r.Advice = plan.Advise(q.accounts, g.full.Least(), q.future.agenda.debts.claim(g, nil, now), g.opportunistic(), r, now)
}

// Outlook is what would happen to a Run if it were submitted now.
type Outlook struct {
	// At is when that was so.
	At time.Time
	// GPUs that it would start with at once, spares apart; 0 when it would wait. Places are where.
	GPUs, GPUsPerPod int
	Places           []plan.Assignment
	// Refusal is why it would wait, and Promise when it would start; nil when it would get no date.
	Refusal *plan.Refusal
	Promise *forecast.Promise
	// InLine is its place in line if it would get no date; nil otherwise.
	InLine *QueuePlace
	// Changes to the Run would make it start now, each by itself.
	Changes []Change
	// NotAsked are the scheduling rules that its pods use and that nobody has been asked about.
	NotAsked []string
	// Remarks are what there is to say of its shape.
	Remarks []string
}

// Change is a change to a Run that would make it start now.
type Change struct {
	// What to set, such as `resources.totalGPUs: 64`, and the GPUs that the Run would start with.
	What string
	GPUs int
}
