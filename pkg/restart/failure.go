package restart

import (
	"fmt"
	"strings"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/ending"
)

// Why is why a Run is not started again, as the reason of a condition.
type Why string

// Values of Why.
const (
	// ByLimit: it has been often enough.
	ByLimit Why = "RestartLimit"
	// ByCode: the program says with its exit code that it would be of no use.
	ByCode Why = "ExitCode"
	// ByNodes: one rank has died on so many nodes that the nodes are not to blame.
	ByNodes Why = "DiedOnEveryNode"
)

// Failure is why a Run ends.
type Failure struct {
	Why Why
	// Death is the one that it ends with, and Deaths are all that are known.
	Death    rqv1.RunDeath
	Deaths   []rqv1.RunDeath
	Restarts rqv1.RunRestartsStatus
}

// String says which rank it was, where, how often and of what.
func (f *Failure) String() string {
	died := fmt.Sprintf("rank %d died on node %s: %s", f.Death.Index, f.Death.Node, ending.Words(&f.Death))
	switch f.Why {
	case ByCode:
		return fmt.Sprintf("%s; runtime.restarts.onExitCodes says Fail for exit code %d, so the Run does not restart", died,
			f.Death.ExitCode)
	case ByNodes:
		return fmt.Sprintf("%s; it has died on %s, so its program is the likely cause", died, strings.Join(f.where(), ", "))
	}
	return fmt.Sprintf("%s; it was the first to die %s, on %s, and the Run has restarted %d times without a long "+
		"enough quiet time in between, which is its limit (runtime.restarts.limit)", died, times(len(f.blamed())),
		strings.Join(f.where(), ", "), f.Restarts.Counted-1)
}

// blamed returns the deaths for which the rank was blamed, in the order in which they came.
func (f *Failure) blamed() (deaths []rqv1.RunDeath) {
	for _, d := range f.Deaths {
		if d.First && d.Index == f.Death.Index && d.Incident > f.Restarts.Incidents-f.Restarts.Counted {
			deaths = append(deaths, d)
		}
	}
	return deaths
}

// where returns the nodes on which the rank died first, in order, each with how often if that was more than once.
func (f *Failure) where() (nodes []string) {
	count, order := map[string]int{}, []string{}
	for _, d := range f.blamed() {
		count[d.Node]++
		if count[d.Node] == 1 {
			order = append(order, d.Node)
		}
	}
	for _, node := range order {
		if n := count[node]; n > 1 {
			node += " (" + times(n) + ")"
		}
		nodes = append(nodes, node)
	}
	return nodes
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}
