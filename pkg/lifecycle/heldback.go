package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// nodesTold is how many nodes a message names.
const nodesTold = 5

// setHeldBack says which nodes of the Run show signs of loss and are not taken for lost. It says nothing that changes from
// second to second: many Runs have such nodes at once.
func (s *state) setHeldBack(next *rqv1.RunStatus) {
	condition := metav1.Condition{
		Type: rqv1.ConditionNodesHeldBack, Status: metav1.ConditionFalse, Reason: "Judged",
		Message: "no loss of a node of the Run is held back", ObservedGeneration: s.Run.Generation,
	}
	nodes := s.heldBack()
	if len(nodes) > 0 {
		named := strings.Join(nodes[:min(len(nodes), nodesTold)], " ")
		if more := len(nodes) - nodesTold; more > 0 {
			named += fmt.Sprintf(" and %d more", more)
		}
		condition.Status, condition.Reason = metav1.ConditionTrue, "NodeLossLimit"
		condition.Message = fmt.Sprintf("these nodes show signs of loss, and so do more nodes at once than nodeLossLimit allows: none of them is taken for "+
			"lost, and their ranks are not moved (R25): %s. If they are gone, an administrator says so: kubectl runs nodes lost NODE", named)
	} else if meta.FindStatusCondition(next.Conditions, rqv1.ConditionNodesHeldBack) == nil {
		return
	}
	s.setCondition(next, condition)
}

// heldBack returns the nodes with open Leases of the Run whose loss is held back, in order.
func (s *state) heldBack() []string {
	var nodes []string
	for _, lease := range s.Leases {
		if node := lease.Node(); lease.Spec.RunRef.UID == s.Run.UID && s.Nodes[node].HeldBack {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}
