package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// conditions are those of the next status of a Run.
type conditions struct {
	run  *rqv1.Run
	now  time.Time
	next *rqv1.RunStatus
}

// saying is why a condition is as it is, in a word and in a sentence.
type saying struct{ reason, message string }

// put sets a condition, with the time at which it became so.
func (c conditions) put(kind string, status metav1.ConditionStatus, why saying) {
	condition := metav1.Condition{Type: kind, Status: status, Reason: why.reason,
		Message: Shortened(why.message, longestMessage), ObservedGeneration: c.run.Generation}
	if old := meta.FindStatusCondition(c.next.Conditions, kind); old == nil || old.Status != status {
		condition.LastTransitionTime = metav1.NewTime(c.now)
	}
	meta.SetStatusCondition(&c.next.Conditions, condition)
}

// renew sets a condition to true, as of now: each time is one of its own.
func (c conditions) renew(kind string, why saying) {
	meta.RemoveStatusCondition(&c.next.Conditions, kind)
	c.put(kind, metav1.ConditionTrue, why)
}

// raise sets a condition that is absent until it is true for the first time: true for a reason, or false when there is
// none.
func (c conditions) raise(kind string, yes *saying, no saying) {
	switch {
	case yes != nil:
		c.put(kind, metav1.ConditionTrue, *yes)
	case meta.FindStatusCondition(c.next.Conditions, kind) != nil:
		c.put(kind, metav1.ConditionFalse, no)
	}
}

// setPhase says whether the Run has started and, once it has ended, how.
func setPhase(c conditions, phase rqv1.RunPhase, reason, message string) {
	why := saying{reason, message}
	switch phase {
	case rqv1.RunRunning:
		c.put(rqv1.ConditionStarted, metav1.ConditionTrue, why)
	case rqv1.RunCompleted, rqv1.RunFailed:
		c.put(rqv1.ConditionFinished, metav1.ConditionTrue, why)
	default:
		c.put(rqv1.ConditionStarted, metav1.ConditionFalse, why)
	}
}

// setOverdraft says how many of the Run's GPUs are beyond what their payers allow.
func setOverdraft(c conditions) {
	var owed []string
	gpus := int32(0)
	if c.next.Funding != nil {
		for _, payer := range c.next.Funding.Sponsors {
			if payer.Relation == relationOverdraft {
				gpus += payer.GPUs
				owed = append(owed, fmt.Sprintf("%d of %s", payer.GPUs, payer.Owner))
			}
		}
	}
	var beyond *saying
	if gpus > 0 {
		beyond = &saying{"BeyondBudget",
			fmt.Sprintf("%d GPUs exceed what their payers now allow (%s); the Run continues, and these GPUs count against "+
				"every cap of their payers until they are released", gpus, strings.Join(owed, ", "))}
	}
	c.raise(rqv1.ConditionOverdraft, beyond, saying{"WithinBudget", "every GPU is within what its payer allows"})
}

// nodesTold is how many nodes a message names.
const nodesTold = 5

// namedNodes names the first of nodes, and says how many more there are.
func namedNodes(nodes []string) string {
	named := strings.Join(nodes[:min(len(nodes), nodesTold)], " ")
	if more := len(nodes) - nodesTold; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return named
}

// setHeldBack says which nodes of the Run show signs of loss and are not taken for lost. It says nothing that changes
// from second to second: many Runs have such nodes at once.
func setHeldBack(c conditions, f *facts) {
	var held *saying
	if nodes := heldBack(f); len(nodes) > 0 {
		held = &saying{"NodeLossLimit", fmt.Sprintf("these nodes show signs of loss, but so do more nodes at once than "+
			"nodeLossLimit allows: jobtree treats none of them as lost and does not move their ranks: %s. If a node is "+
			"really gone, an administrator runs: kubectl runs nodes lost NODE", namedNodes(nodes))}
	}
	if held == nil && f.DevicesHeld {
		held = &saying{"NodeLossLimit", "kubelets report broken devices of this Run's ranks, but on more nodes at once " +
			"than nodeLossLimit allows: the ranks are not moved"}
	}
	c.raise(rqv1.ConditionNodesHeldBack, held, saying{"Judged", "no loss of the Run's nodes is held back"})
}

// heldBack returns the nodes with open Leases of the Run whose loss is held back, in order.
func heldBack(f *facts) []string {
	var nodes []string
	for _, lease := range f.Leases {
		if node := lease.Node(); lease.Spec.RunRef.UID == f.Run.UID && f.Nodes[node].HeldBack {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// setGrace says that the Run's pods are made with less to end than its template asks for; it is absent when they are
// not.
func setGrace(c conditions, rules *Rules) {
	asked, most, short := rules.cutShort(c.run)
	if !short {
		meta.RemoveStatusCondition(&c.next.Conditions, rqv1.ConditionGraceCapped)
		return
	}
	c.put(rqv1.ConditionGraceCapped, metav1.ConditionTrue, saying{"MaxGracePeriod", fmt.Sprintf(
		"spec.template.spec.terminationGracePeriodSeconds is %d; the Run's pods have %d, the most that this scheduler "+
			"allows (maxGracePeriod)", asked, most)})
}

// setRoomKept says whether the Run keeps its room: from when it is requeued because of a node's loss until it has
// started again or has not in time (R22). One that was cut, or whose time was over, keeps nothing, nor does one that
// lacks a rank which somebody ended. The book goes by it, also after a restart.
func setRoomKept(c conditions, s *situation) {
	f := s.facts
	switch kept := meta.IsStatusConditionTrue(c.next.Conditions, rqv1.ConditionRoomKept); {
	case s.requeued() && s.cuts.final == nil && !s.timesOut() && f.Shape == nil && len(f.Lost) > 0 &&
		!c.next.HeldInVain.Rests(f.Now):
		c.renew(rqv1.ConditionRoomKept, saying{"Requeued", fmt.Sprintf("the GPUs that the Run held, except those of lost "+
			"nodes, are kept for it until %s after its last old pod is gone", f.GangDeadline)})
	case !kept:
	case s.suspends():
		c.put(rqv1.ConditionRoomKept, metav1.ConditionFalse, saying{"Suspended", "no room is kept for a suspended Run"})
	case s.phase == rqv1.RunRunning:
		c.put(rqv1.ConditionRoomKept, metav1.ConditionFalse, saying{"Started", "the Run has started again"})
	case s.hasEnded():
		c.put(rqv1.ConditionRoomKept, metav1.ConditionFalse, saying{"Finished", "the Run has ended"})
	case f.RoomLapsed:
		c.put(rqv1.ConditionRoomKept, metav1.ConditionFalse, saying{"Lapsed", fmt.Sprintf(
			"the Run did not start again within %s; it now waits in the queue by its age", f.GangDeadline)})
	}
}
