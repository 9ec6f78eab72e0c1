package book

import (
	"slices"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
)

// RestingOn returns, in order of their names, the Runs whose promises may rest on those who go for one, by the names
// that each of them is promised to start after.
func RestingOn(after map[string][]string, one string) (out []string) {
	f := &horizon{agenda: &agenda{promised: map[*gang]bool{}}}
	for name, names := range after {
		g := &gang{run: &rqv1.Run{}}
		g.run.Name, g.promise = name, &forecast.Promise{}
		for _, before := range names {
			g.promise.After = append(g.promise.After, rqv1.NamespacedName{Name: before})
		}
		f.agenda.promised[g] = true
	}
	of := &gang{run: &rqv1.Run{}}
	of.run.Name = one
	for g := range f.restingOn(of) {
		out = append(out, g.run.Name)
	}
	slices.Sort(out)
	return out
}
