package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/outage"
	"github.com/davidlangworthy/jobtree/pkg/rank"
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
	until := f.lastsUntil()
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
		ahead = &saying{"NodeMaintenance", fmt.Sprintf("maintenance is planned for nodes of the Run; %s",
			strings.Join(told, "; "))}
		if stay := f.Drain.Stay; len(stay) > 0 {
			ahead.reason = "NowhereToMove"
			ahead.message += fmt.Sprintf("; ranks on %s stay there until their nodes go out of service: %s",
				namedNodes(nodesIn(stay)),
				f.Drain.StayWhy)
		}
	}
	c.raise(rqv1.ConditionMaintenanceAhead, ahead, saying{"NoneAhead", "no maintenance is planned for nodes of the Run"})
}

// bySign is the word in the record of a rank that has left its node for maintenance.
const bySign = string(rqv1.ClosedMaintenance)

// untilMoved returns when to look again whether ranks have somewhere to go that leave, or would: others come and go
// meanwhile.
func untilMoved(f *facts) time.Duration {
	if f.Drain.Asking || len(f.Drain.Leave)+len(f.Drain.Stay) > 0 {
		return redrain
	}
	return 0
}

// mayMove reports whether the ranks that have somewhere to go may leave their nodes: the Run is as wide as its status
// says, each of its ranks is where it is to be, and nobody can evict another meanwhile.
func mayMove(s *situation) bool {
	d := &s.facts.Drain
	if len(d.Leave) == 0 || d.Narrower > 0 || d.Moving || !s.narrowed() || !everyRankRuns(s) {
		return false
	}
	own := s.facts.ownGuard()
	return own == nil || !s.guard.stale && own.Status.DisruptionsAllowed == 0 && len(own.Status.DisruptedPods) == 0
}

// leavesNode reports whether a pod of the Run leaves its node for maintenance: a rank that has somewhere to go, or a
// spare that makes room for none.
func (s *situation) leavesNode(pod *corev1.Pod) bool {
	_, part, ours := rank.Membership(pod)
	d := &s.facts.Drain
	switch {
	case !ours || s.phase != rqv1.RunRunning || !active(pod) || !bound(pod):
		return false
	case part.Spare:
		return s.swaps.claims[pod.UID] == nil && slices.Contains(d.Spares, part.Index)
	}
	return s.moves && slices.Contains(d.Leave, book.DrainedRank{Index: part.Index, Node: pod.Spec.NodeName})
}

// noticeOfMaintenance returns what a pod is told that leaves its node for maintenance.
func (f *facts) noticeOfMaintenance(pod *corev1.Pod) *Notice {
	node := pod.Spec.NodeName
	return f.notice(pod, rqv1.ClosedMaintenance, fmt.Sprintf("maintenance of node %s is planned: %s; its pod leaves "+
		"before that",
		node, f.Nodes[node].Outage))
}

// movesAgain reports whether a rank that has left its node for maintenance would have to leave a spare's, too.
func (f *facts) movesAgain(made *rank.Replacement, spare *corev1.Pod) bool {
	until := f.lastsUntil()
	return made.Sign == bySign && f.Nodes[spare.Spec.NodeName].Outage.Shuts(f.Now, until)
}

// lastsUntil returns when the Run is over at the latest, if it does not run yet after it starts now; zero where it may
// run for ever.
func (f *facts) lastsUntil() time.Time {
	started, runs := f.Run.StartedAt()
	if !runs {
		started = f.Now
	}
	return f.Run.Spec.Until(started)
}

// leftForMaintenance reports whether the pod of a Lease that is gone has left its node for maintenance: it was told so,
// or maintenance is close. Who comes after a process that died in between knows no more.
func (f *facts) leftForMaintenance(lease *rqv1.Lease) bool {
	if reason, told := toldToGo(f.podOf[lease.PodUID()]); told {
		return reason == rqv1.ClosedMaintenance
	}
	until := f.lastsUntil()
	w := f.Nodes[lease.Node()].Outage
	return w.Shuts(f.Now, until) && !f.Now.Before(w.LeaveFrom(f.NoticePeriod, f.Run.Spec.CheckpointInterval()))
}
