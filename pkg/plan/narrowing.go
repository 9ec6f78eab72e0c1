package plan

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// mostWidths is how many widths are tried one after the other. Each takes a plan, less than 1 ms in a fleet of 6,000
// nodes.
const mostWidths = 16

// Narrowing is a gang that lost ranks for which there is no room, and may go on narrower: the pods beyond its width
// give up theirs.
type Narrowing struct {
	Fleet    *topology.Fleet
	Accounts *budget.Accounts
	// Demand is the shape of the Run, Width how many active pods its gang has, and Least how many it has at the least.
	Demand       Demand
	Width, Least int
	Missing      []Missing
	// Placed are its other pods.
	Placed []Placed
	// Claim is what the gang may claim when some ranks are missing.
	Claim    func([]Missing) Claim
	Excluded func(node string) bool
	Now      time.Time

	fork  *Fork
	marks []int // before each of the pods that have given up their room
}

// Placed is a pod that has a place, and what it holds there.
type Placed struct {
	rank.Part
	Node   string
	GPUs   int
	Beside *topology.Amounts
}

// Widest returns the widest width in pods below its own at which the gang could go on; 0 when there is none (R27). It
// tries widths as they are given up, one step at a time, but for those at which nothing has changed for the ranks that
// are missing. After mostWidths the rest is searched in halves, where a width is taken to do if a wider one does.
func (n *Narrowing) Widest() int {
	step := n.Demand.StepPods
	if step == 0 {
		return 0
	}
	n.fork = NewFork(n.Fleet, n.Accounts)
	defer n.fork.Revert()
	n.order()
	tried, missing, last := 0, n.Missing, -1
	for width := n.Width - step; width >= n.Least; width -= step {
		freed := n.giveUp(width)
		missing = n.Demand.At(width).Within(missing)
		if len(missing) == last && !slices.ContainsFunc(freed, n.reaches(missing)) {
			continue
		}
		if tried == mostWidths {
			return n.search(width)
		}
		if n.fits(width) {
			return width
		}
		tried, last = tried+1, len(missing)
	}
	return 0
}

// order puts those first that give up their room first.
func (n *Narrowing) order() {
	slices.SortStableFunc(n.Placed, func(a, b Placed) int {
		return cmp.Compare(n.Demand.from(b.Part), n.Demand.from(a.Part))
	})
	n.marks = n.marks[:0]
}

// search returns the widest width that does from one on, in halves.
func (n *Narrowing) search(width int) int {
	if !n.fits(n.Least) {
		return 0
	}
	steps := (width - n.Least) / n.Demand.StepPods
	return width - n.Demand.StepPods*sort.Search(steps, func(i int) bool { return n.fits(width - i*n.Demand.StepPods) })
}

// fits reports whether the ranks that are missing at a width fit there.
func (n *Narrowing) fits(width int) bool {
	d := n.Demand.At(width)
	missing := d.Within(n.Missing)
	if len(missing) == 0 {
		return true
	}
	n.giveUp(width)
	return Fits(n.Fleet, n.Accounts, d, n.Claim(missing), missing, n.Excluded, n.Now)
}

// giveUp has exactly the pods beyond a width have given up their room, and returns those that had not.
func (n *Narrowing) giveUp(width int) []Placed {
	beyond := sort.Search(len(n.Placed), func(i int) bool { return n.Demand.from(n.Placed[i].Part) <= width })
	if beyond < len(n.marks) {
		n.fork.RevertTo(n.marks[beyond])
		n.marks = n.marks[:beyond]
	}
	before := len(n.marks)
	for _, p := range n.Placed[before:beyond] {
		n.marks = append(n.marks, n.fork.Mark())
		n.fork.Give(p.Node, p.GPUs, p.Beside)
	}
	return n.Placed[before:beyond]
}

// reaches returns whether the room of a pod is of any use to some that are missing: those of groups that lie in a
// domain already go nowhere else.
func (n *Narrowing) reaches(missing []Missing) func(Placed) bool {
	domains, free := map[string]bool{}, false
	for i := range missing {
		domains[missing[i].Domain] = true
		free = free || missing[i].Domain == ""
	}
	free = free && (!n.Demand.OneDomain || len(domains) == 1)
	return func(p Placed) bool { return free || domains[n.Fleet.DomainOf(p.Node)] }
}

// from returns the narrowest width in pods at which a pod takes part.
func (d Demand) from(p rank.Part) int {
	of, each := p.Index, d.PodsPerGroup
	if p.Spare {
		each = d.SparesPerGroup
	}
	switch {
	case each == 0, !d.Confined && p.Spare && of >= d.Spares():
		return math.MaxInt
	case d.Confined:
		return (of/each + 1) * d.PodsPerGroup
	case p.Spare:
		return 0
	}
	return of + 1
}
