package forecast

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/resolver"
	"github.com/davidlangworthy/jobtree/pkg/topology"
)

// Slice is the fabric domains in which a Run is going to start.
type Slice struct {
	// Domains are the keys of the fabric domains.
	Domains map[string]bool
	// Labels are the topology labels of the narrowest domain that contains them, and Scope names them all.
	Labels map[string]string
	Scope  string
	// Wants is how many GPUs the Run wants, Free how many of all are free in the domains, and Deficit how many are short.
	// Then says that the latter two are counted at the promise's date, after what happens before, and not now.
	Wants, Free, Deficit int
	Then                 bool
}

// feasibility is the fleet as the resolver sees it.
type feasibility struct {
	fleet   *topology.Fleet
	attempt *plan.Attempt
}

// Free marks what is held as free.
func (w feasibility) Free(holds []resolver.Holding) {
	for _, h := range holds {
		w.fleet.Hold(h.Node, -h.GPUs, h.Beside)
	}
}

// Hold marks what was freed as held again.
func (w feasibility) Hold(holds []resolver.Holding) {
	for _, h := range holds {
		w.fleet.Hold(h.Node, h.GPUs, h.Beside)
	}
}

// Fits reports whether the Run would start.
func (w feasibility) Fits() bool { return w.attempt.Fits(w.fleet) }

func free(fork *plan.Fork, holds []resolver.Holding) {
	for _, h := range holds {
		fork.Give(h.Node, h.GPUs, h.Beside)
	}
}

// slices returns the slices in which to look for cuts, the best first: as few domains as have the least deficit of all,
// the emptiest of them, and then wider ones, in case too little may be cut there.
func (t *timeline) slices(attempt *plan.Attempt) []Slice {
	rooms := t.s.Fleet.RoomOf(t.ask.Demand.Flavor)
	slices.SortStableFunc(rooms, func(x, y topology.DomainRoom) int {
		return cmp.Or(cmp.Compare(y.Free, x.Free), strings.Compare(x.Key, y.Key))
	})
	all := keysOf(rooms)
	least, possible := t.short(attempt, all)
	if !possible {
		return nil
	}
	enough := func(domains []string) bool {
		short, possible := t.short(attempt, domains)
		return possible && short <= least
	}
	n := 1 + sort.Search(len(all)-1, func(i int) bool { return enough(all[:i+1]) })
	best := slices.Clone(all[:n])
	for i := n - 1; i >= 0 && len(best) > 1; i-- {
		if without := slices.Delete(slices.Clone(best), i, i+1); enough(without) {
			best = without
		}
	}
	out := []Slice{t.sliceOf(setOf(best), attempt)}
	for wider := len(best); wider < len(all); {
		wider = min(2*wider, len(all))
		for _, domain := range all {
			if len(best) < wider && !slices.Contains(best, domain) {
				best = append(best, domain)
			}
		}
		out = append(out, t.sliceOf(setOf(best), attempt))
	}
	return out
}

// fewestDrawn puts those slices first in which the least is left to the lottery: nobody is drawn in some domains for
// GPUs by which Runs in others could become narrower and run on (R19). Each slice lies in the next.
func (t *timeline) fewestDrawn(all []Slice, attempt *plan.Attempt, at time.Time, tenants tenantsAt) []Slice {
	if len(all) < 2 {
		return all
	}
	left := t.leftToDraw(all[0].Domains, attempt, at, tenants)
	if left(all[0].Domains) == 0 {
		return all
	}
	least := left(all[len(all)-1].Domains)
	n := sort.Search(len(all)-1, func(i int) bool { return left(all[i].Domains) <= least })
	return slices.Concat(all[n:], all[:n])
}

// leftToDraw returns how many GPUs have no place in some domains when all steps are given up there, and all spares in a
// scope: those elsewhere stay where they are of use.
func (t *timeline) leftToDraw(scope map[string]bool, attempt *plan.Attempt, at time.Time,
	tenants tenantsAt) func(domains map[string]bool) int {
	var spares []resolver.Holding
	for _, c := range tenants(scope, at) {
		for i := range c.Spares {
			spares = append(spares, c.Spares[i].Holds...)
		}
	}
	return func(domains map[string]bool) int {
		w, freed := feasibility{t.s.Fleet, nil}, slices.Clone(spares)
		for _, c := range tenants(domains, at) {
			for i := range c.Steps {
				freed = append(freed, c.Steps[i].Holds...)
			}
		}
		w.Free(freed)
		short := attempt.Within(domains).Short(t.s.Fleet)
		w.Hold(freed)
		if short == nil {
			return 0
		}
		return short.ShortGPUs
	}
}

// short returns how many GPUs have no place in some domains, and whether they could ever have.
func (t *timeline) short(attempt *plan.Attempt, domains []string) (gpus int, possible bool) {
	short := attempt.Within(setOf(domains)).Short(t.s.Fleet)
	if short == nil {
		return 0, true
	}
	return short.ShortGPUs, short.Kind == topology.NoRoom || short.Kind == topology.Unpayable
}

// sliceOf describes a slice. Its deficit is what the Run wants beyond the GPUs that are free in it; when those are
// enough but lie badly, what finds no place.
func (t *timeline) sliceOf(domains map[string]bool, attempt *plan.Attempt) Slice {
	out := Slice{Domains: domains, Labels: map[string]string{}, Wants: attempt.WantedGPUs(), Then: len(t.marks) > 0}
	levels := t.s.Fleet.Levels()
	values := make([][]string, len(levels))
	for _, room := range t.s.Fleet.RoomOf(t.ask.Demand.Flavor) {
		if !domains[room.Key] {
			continue
		}
		out.Free += room.Free
		for i, value := range room.Values {
			if !slices.Contains(values[i], value) {
				values[i] = append(values[i], value)
			}
		}
	}
	var scope []string
	for i, level := range levels {
		scope = append(scope, level+"="+strings.Join(values[i], "|"))
		if len(values[i]) == 1 {
			out.Labels[level] = values[i][0]
		}
	}
	out.Scope = strings.Join(scope, ",")
	out.Deficit = out.Wants - out.Free
	if out.Deficit <= 0 {
		out.Deficit = 0
		if short := attempt.Within(domains).Short(t.s.Fleet); short != nil && short.Kind == topology.NoRoom {
			out.Deficit = short.ShortGPUs
		}
	}
	return out
}

// around returns the fabric domains of the narrowest domain that contains a slice.
func (t *timeline) around(slice Slice) map[string]bool {
	return domainsWhere(t.s.Fleet, t.ask.Demand.Flavor, func(level, value string) bool {
		is, one := slice.Labels[level]
		return !one || value == is
	})
}

// Domains returns the keys of the fabric domains that a scope names, as a Slice writes it.
func Domains(fleet *topology.Fleet, flavor, scope string) map[string]bool {
	named := map[string][]string{}
	for _, part := range strings.Split(scope, ",") {
		level, values, _ := strings.Cut(part, "=")
		named[level] = strings.Split(values, "|")
	}
	return domainsWhere(fleet, flavor, func(level, value string) bool { return slices.Contains(named[level], value) })
}

// domainsWhere returns the keys of the fabric domains whose values of all levels are such.
func domainsWhere(fleet *topology.Fleet, flavor string, is func(level, value string) bool) map[string]bool {
	out := map[string]bool{}
	for _, room := range fleet.RoomOf(flavor) {
		outside := false
		for i, value := range room.Values {
			outside = outside || !is(fleet.Levels()[i], value)
		}
		if !outside {
			out[room.Key] = true
		}
	}
	return out
}

func keysOf(rooms []topology.DomainRoom) []string {
	out := make([]string, len(rooms))
	for i := range rooms {
		out[i] = rooms[i].Key
	}
	return out
}

func setOf(keys []string) map[string]bool {
	out := map[string]bool{}
	for _, key := range keys {
		out[key] = true
	}
	return out
}

func payingEnvelope(k budget.Key, gpus int) rqv1.PayingEnvelope {
	return rqv1.PayingEnvelope{Budget: k.Budget, Envelope: k.Envelope, GPUs: int32(gpus)}
}

// addSteps adds to domains those, of others, in which Runs can become narrower.
func (t *timeline) addSteps(domains, of map[string]bool, candidates []resolver.Candidate) {
	for _, c := range candidates {
		for i := range c.Steps {
			for _, h := range c.Steps[i].Holds {
				if domain := t.s.Fleet.DomainOf(h.Node); of[domain] {
					domains[domain] = true
				}
			}
		}
	}
}

// domainsOf returns the fabric domains that assignments lie in.
func domainsOf(assignments []plan.Assignment) map[string]bool {
	out := map[string]bool{}
	for _, a := range assignments {
		out[a.Domain] = true
	}
	return out
}
