package audit

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/davidlangworthy/jobtree/pkg/budget"
)

// Look checks a world.
func (r Rules) Look(w *World) *Look {
	s := newSight(r, w)
	for _, check := range []func(){
		s.nodes, s.pods, s.leases, s.groups, s.runs, s.closings, s.reservations, s.caps, s.hours,
	} {
		check()
	}
	l := &Look{found: s.found, open: map[string]budget.Charge{}, closed: map[types.UID]closing{}, budgets: s.counted()}
	for _, lease := range s.Leases {
		if lease.Status.Closed {
			l.closed[lease.UID] = closingOf(lease)
			continue
		}
		l.open[nameOf(lease)] = s.charges[lease]
	}
	return l
}

// Standing returns what stands in both of two looks, in order of invariants and objects. Of a settled world one look
// will do, for both.
func Standing(before, after *Look) []Finding {
	var out []Finding
	for key, f := range after.found {
		if _, both := before.found[key]; both {
			out = append(out, f)
		}
	}
	out = append(out, miscounted(before, after)...)
	out = append(out, rewritten(before, after)...)
	slices.SortFunc(out, func(x, y Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(Invariants, x.Invariant), slices.Index(Invariants, y.Invariant)),
			-strings.Compare(string(x.Level), string(y.Level)), strings.Compare(x.Key(), y.Key()))
	})
	return out
}

// Count returns the number of violations of each invariant, 0 included.
func Count(findings []Finding) map[Invariant]int {
	out := map[Invariant]int{}
	for _, i := range Invariants {
		out[i] = 0
	}
	for i := range findings {
		if findings[i].Level == Violation {
			out[findings[i].Invariant]++
		}
	}
	return out
}
