package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/outage"
)

// affected is a node with open Leases of the Run that is, or is going to be, out of service by plan.
type affected struct {
	node   string
	window outage.Window
	sign   string
}

// why says what is announced.
func (a *affected) why() string {
	if a.window.Announced() {
		return a.window.String()
	}
	return "condition " + a.sign
}

// maintained returns those nodes, but for those whose maintenance starts once the Run has ended. They are in the order
// of their dates; those without one come last.
func maintained(f *facts) []affected {
	var out []affected
	until, _ := f.Run.EndsAt()
	for _, lease := range f.Leases {
		node := lease.Node()
		state := f.Nodes[node]
		a := affected{node: node, window: state.Outage, sign: state.Sign}
		if !a.window.Shuts(f.Now, until) {
			a.window = outage.Window{}
		}
		if lease.Spec.RunRef.UID == f.Run.UID && (a.window.Announced() || a.sign != "") {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(x, y affected) int {
		dated := func(a affected) int {
			if a.window.Announced() {
				return 0
			}
			return 1
		}
		return cmp.Or(dated(x)-dated(y), x.window.Start.Compare(y.window.Start), x.window.End.Compare(y.window.End),
			strings.Compare(x.sign, y.sign), strings.Compare(x.node, y.node))
	})
	return slices.Compact(out)
}

// setMaintenance says of which nodes of the Run maintenance is announced, and when it is. It says nothing that changes
// from second to second.
func setMaintenance(c conditions, f *facts) {
	var ahead *saying
	if nodes := maintained(f); len(nodes) > 0 {
		var told []string
		for i := 0; i < min(len(nodes), nodesTold); {
			names, why := []string{}, nodes[i].why()
			for ; i < min(len(nodes), nodesTold) && nodes[i].why() == why; i++ {
				names = append(names, nodes[i].node)
			}
			told = append(told, fmt.Sprintf("%s: %s", strings.Join(names, " "), why))
		}
		if more := len(nodes) - nodesTold; more > 0 {
			told = append(told, fmt.Sprintf("and %d more", more))
		}
		ahead = &saying{"NodeMaintenance", fmt.Sprintf("nodes of the Run are to be out of service (R35); %s",
			strings.Join(told, "; "))}
	}
	c.raise(rqv1.ConditionMaintenanceAhead, ahead, saying{"NoneAhead", "no maintenance of a node of the Run is ahead"})
}
