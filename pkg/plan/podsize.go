package plan

import (
	"slices"
	"sort"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// podSize returns the GPUs of one pod where neither the Run nor its template says how many: the largest size that
// divides every width and with which the Run's ranks fit the fleet, and are paid for there, while nobody holds
// anything, at its total, or else at the widest width that any size allows. Who pays now comes before who pays once
// windows have opened, and room that nobody pays for last. If no size has any, it is the largest that divides and fits
// a node (R14). Spares take no part: smaller pods would make room and money for them, but each would replace less than
// a node. Nor does a lesser width that the Run desires: it may desire its total while it runs, in the same pods.
func (d Demand) podSize(spec *rqv1.RunSpec, fleet *topology.Blocks, payers *Payers) int {
	var shapes []Demand
	spec = atTotal(spec)
	widths := widthsOf(spec)
	for size := min(widths[1], fleet.Largest()); size > 0; size-- {
		if !divides(size, widths) {
			continue
		}
		if shape, refusal := d.inPods(spec, size); refusal == nil {
			shapes = append(shapes, shape.ranksAlone())
		}
	}
	if len(shapes) == 0 {
		return 1 // its groups do not divide its total: it is refused for that
	}
	for _, fits := range payers.ways(spec, fleet) {
		best, widest := 0, 0
		for _, shape := range shapes {
			width := shape.widestThat(fits)
			if width > widest {
				best, widest = shape.GPUsPerPod, width
			}
			if width == shape.GPUs() {
				break
			}
		}
		if best > 0 {
			return best
		}
	}
	return shapes[0].GPUsPerPod
}

// atTotal returns what a Run asks for if it desires its total.
func atTotal(spec *rqv1.RunSpec) *rqv1.RunSpec {
	if spec.Malleable == nil {
		return spec
	}
	out, malleable := *spec, *spec.Malleable
	malleable.DesiredTotalGPUs = &out.Resources.TotalGPUs
	out.Malleable = &malleable
	return &out
}

// Outgrown reports whether the ranks of a Run that waits with pods of a size fit no fleet of nodes such as there are by
// now, or are paid for on none, at any of its widths, and would be with pods of another size, which neither the Run nor
// its template fixes.
func Outgrown(spec *rqv1.RunSpec, d Demand, fleet *topology.Blocks, payers *Payers) bool {
	if d.GPUsPerPod == 0 {
		return false
	}
	other, refusal := DemandOf(spec, 0, fleet, payers)
	if refusal != nil || other.GPUsPerPod == d.GPUsPerPod {
		return false
	}
	d, other = d.ranksAlone(), other.ranksAlone()
	ways := payers.ways(spec, fleet)
	if len(ways) > 1 {
		ways = ways[len(ways)-2:] // what pays once windows have opened is worth waiting for
	}
	for _, fits := range ways {
		if d.widestThat(fits) > 0 {
			return false
		}
		if other.widestThat(fits) > 0 {
			return true
		}
	}
	return false
}

// Payers are asked who pays for a Run of which nobody holds anything yet.
type Payers struct {
	Accounts *budget.Accounts
	// Fleet is the nodes on which they may pay, whatever is held of them.
	Fleet *topology.Fleet
	Now   time.Time
	// Spends is true once an answer has rested on a limit on GPU-hours: they may be spent later.
	Spends bool
}

// ways returns the tests, the best first, of whether a Run can start in a shape while nobody holds anything.
func (p *Payers) ways(spec *rqv1.RunSpec, fleet *topology.Blocks) []func(Demand) bool {
	room := func(d Demand) bool { return d.fits(fleet) }
	if p == nil {
		return []func(Demand) bool{room}
	}
	paid := func(ever bool) func(Demand) bool {
		return func(d Demand) bool { return room(d) && p.pay(spec, d, ever) }
	}
	return []func(Demand) bool{paid(false), paid(true), room}
}

// pay reports whether a Run of a shape is paid for on some nodes that have room for it, while nobody holds anything;
// with ever, once all windows have opened that are still to open.
func (p *Payers) pay(spec *rqv1.RunSpec, d Demand, ever bool) bool {
	claim := Claim{Funding: spec.Funding, MaxDuration: spec.MaxDuration()}
	a := prepare(p.Accounts, budget.Ask{
		Owner: d.Owner, Flavor: d.Flavor, GPUsPerPod: d.GPUsPerPod, Opportunistic: spec.Opportunistic,
		Funding: claim.Funding, MaxDuration: claim.MaxDuration, Unheld: true, Ever: ever,
	}, d, claim, d.EveryPod(), nil, p.Now)
	p.Spends = p.Spends || a.cover.CountsHours()
	if a.cover.Payable() < a.wanted {
		return false
	}
	return a.paidAnywhere() || a.Fits(p.Fleet.Unheld(d.Flavor))
}

// paidAnywhere reports whether the gang is paid for wherever it were placed.
func (a *Attempt) paidAnywhere() bool { return a.payersOn(nil) != nil }

// payersOn returns who pays for each pod on nodes with some labels, wherever it is placed where those are nil, as
// indexes of offers; nil where nobody does.
func (a *Attempt) payersOn(labels map[string]string) []int {
	cover := *a.cover // which numbers the classes of nodes by itself
	class := cover.Class(labels)
	if class < 0 {
		return nil
	}
	return cover.Assign(slices.Repeat([]int{class}, len(a.spare)), a.spare)
}

// ranksAlone returns the same shape without its spares.
func (d Demand) ranksAlone() Demand {
	d.SparesPerGroup = 0
	return d
}

// EveryPod lists all pods of a Run as missing.
func (d Demand) EveryPod() []Missing {
	out := make([]Missing, 0, d.Pods()+d.Spares())
	for i := range d.Pods() {
		out = append(out, Missing{Part: rank.Part{Index: i}})
	}
	for i := range d.Spares() {
		out = append(out, Missing{Part: rank.Part{Spare: true, Index: i}})
	}
	return out
}

// widestThat returns the widest width up to the Run's total, in GPUs, that passes a test which whatever is narrower
// passes too; 0 if none does.
func (d Demand) widestThat(fits func(Demand) bool) int {
	if fits(d) {
		return d.GPUs()
	}
	step := d.StepPods
	if d.LeastPods < d.Pods() {
		step = max(step, 1) // any number of shards may run
	}
	if step == 0 || !fits(d.Least()) {
		return 0
	}
	steps := (d.Pods() - d.LeastPods) / step
	wider := sort.Search(steps, func(n int) bool { return !fits(d.At(d.LeastPods + (n+1)*step)) })
	return d.At(d.LeastPods + wider*step).GPUs()
}

// fits reports whether a fleet has room for all pods of the Run, spares and all, wherever its groups may lie (R12).
func (d Demand) fits(fleet *topology.Blocks) bool {
	switch pods := d.Pods() + d.Spares(); {
	case d.OneDomain:
		return fleet.Fit(topology.Block{Pods: pods, GPUsPerPod: d.GPUsPerPod}, 1)
	case d.Confined:
		return fleet.Fit(topology.Block{Pods: d.PodsPerGroup + d.SparesPerGroup, GPUsPerPod: d.GPUsPerPod}, d.Groups)
	default:
		return fleet.Fit(topology.Block{Pods: 1, GPUsPerPod: d.GPUsPerPod}, pods)
	}
}
