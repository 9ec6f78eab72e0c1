package lifecycle

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// deletionsOf returns the pods that the Run gives up.
func deletionsOf(s *situation) []Deletion {
	r := &s.roster
	switch {
	case s.hasEnded():
		return because("the Run has ended", slices.Concat(endedInPlace(s), endedBy(s, r.spares, present),
			endedBy(s, r.beyond, active)))
	case s.suspends() && s.facts.opportunistic():
		return because("the Run is suspended", endedBy(s, r.all(), active)) // a shard that has completed has done its work
	case s.startsAgain():
		out := because("the Run starts again", endedBy(s, r.all(), present)) // also what has ended: every rank runs again
		if s.overdue() && !s.requeued() && !s.edited {
			unlessWhole(s, out)
			s.tellUnbound(out)
		}
		return out
	case s.facts.Shape != nil:
		return because("no rank is left that it could replace", endedBy(s, r.spares, present))
	}
	return leaving(s)
}

// tellUnbound has pods of others be told why they go that start again.
func (s *situation) tellUnbound(gang []Deletion) {
	if !s.facts.theirs() || s.unmade() > 0 {
		return
	}
	why := storyOfUnbound(s)
	for i := range gang {
		gang[i].Tell = why
	}
}

// because says of some deletions why they are.
func because(why string, all []Deletion) []Deletion {
	for i := range all {
		all[i].Why = why
	}
	return all
}

// unlessWhole has the pods of a gang go only if it has not started, as it seems: of the first of its pods that seems
// not to run, the API server is asked. What has been told to go is not whole again.
func unlessWhole(s *situation, gang []Deletion) {
	parts := slices.Concat(s.roster.core(), s.roster.coreSpares())
	first := slices.IndexFunc(parts, func(pod *corev1.Pod) bool {
		return !present(pod) || !s.facts.runs(pod) && pod.Status.Phase != corev1.PodSucceeded
	})
	if first < 0 || parts[first] != nil && !present(parts[first]) {
		return
	}
	about, evidence := parts[first], Unbound
	switch ranks := len(s.roster.core()); {
	case bound(about):
		evidence = Unpaid
	case about == nil:
		part := rank.Part{Index: first}
		if first >= ranks {
			part = rank.Part{Index: first - ranks, Spare: true}
		}
		about = &corev1.Pod{}
		about.Namespace, about.Name = s.facts.Run.Namespace, part.PodName(s.facts.Run.Name)
	}
	for i := range gang {
		gang[i].If, gang[i].About, gang[i].Run = evidence, about, s.facts.Run.UID
	}
}

// endedBy returns deletions of the pods of a kind; a pod that is cut gets notice.
func endedBy(s *situation, pods []*corev1.Pod, kind func(*corev1.Pod) bool) []Deletion {
	var out []Deletion
	for _, pod := range pods {
		if kind(pod) {
			out = append(out, Deletion{Pod: pod, Notice: noticeFor(s, pod)})
		}
	}
	return out
}

// leaving returns the pods that go while the Run stands: suspect ones, ranks that are cut, are made anew in the place
// of a spare, have died, or were ended by their node, spares that have ended or make room for a rank, and pods beyond
// the width of a Run that runs, or that are left of one that was cut.
func leaving(s *situation) []Deletion {
	out := leavingOf(s, s.roster.ranks, s.whyRankLeaves)
	for i := range out {
		if d := &out[i]; s.facts.Moves[d.Pod.UID] && d.Notice == nil {
			d.Tell = "the pod's group has lost a pod, its domain has no room for another one, and the whole group moves to " +
				"another domain"
		}
	}
	out = append(out, leavingOf(s, s.roster.spares, s.whySpareLeaves)...)
	out = append(out, because("the Run waits, and has no places", disbanded(s))...)
	if s.narrowed() || s.facts.opportunistic() {
		return append(out, leavingOf(s, s.roster.beyond, func(int, *corev1.Pod) string { return beyondWidth })...)
	}
	return append(out, because(isCut, endedBy(s, s.roster.beyond, func(pod *corev1.Pod) bool {
		return present(pod) && s.cuts.doom(pod) // it was wider when it was cut than it asks for
	}))...)
}

const (
	isCut       = "it is cut"
	beyondWidth = "it is beyond the Run's width"
)

// whyRankLeaves says why a rank goes while its Run stands; empty where it stays.
func (s *situation) whyRankLeaves(index int, pod *corev1.Pod) string {
	switch f := s.facts; {
	case s.cuts.doom(pod):
		return isCut
	case s.swaps.relief[index].Spare != "":
		return "it is made anew to take the place of a spare"
	case f.reclaims(pod):
		return "it gives its GPUs back"
	case f.makesWay(pod):
		return "its node has ended it"
	case s.startsAnew(pod):
		return "it has died, and is made anew"
	case s.movesOn(pod):
		return "it has died, and is made anew elsewhere"
	case f.leavesDevice(pod):
		return "a device of it is broken"
	case s.leavesNode(pod):
		return leavesForMaintenance
	case f.Moves[pod.UID]:
		return "its group moves to another domain"
	}
	return ""
}

const leavesForMaintenance = "it leaves its node for maintenance"

// whySpareLeaves says why a spare goes while its Run stands; empty where it stays.
func (s *situation) whySpareLeaves(_ int, pod *corev1.Pod) string {
	_, stays := s.facts.Unseated[pod.UID]
	switch {
	case !unfinished(pod):
		return "it has ended"
	case s.cuts.doom(pod):
		return isCut
	case s.leavesNode(pod):
		return leavesForMaintenance
	case s.swaps.claims[pod.UID] != nil && !stays:
		return "a rank takes its place"
	}
	return ""
}

// disbanded returns the pods of a Run that waits which have no places, but for its leader's (R32). That goes too where
// nobody pays, or others go before, and so do shards that wait.
func disbanded(s *situation) []Deletion {
	f, r := s.facts, &s.roster
	none := f.Unpaid || f.Yields
	switch {
	case f.opportunistic() && !f.Yields, !f.opportunistic() && (saysRunning(f.Run) || !f.Disbands && !none):
		return nil
	}
	var out []Deletion
	leader := leads(r.ranks)
	for _, pod := range slices.Concat(r.ranks, r.spares, r.beyond) {
		if !none && leader < len(r.ranks) && pod == r.ranks[leader] {
			continue
		}
		if active(pod) && !bound(pod) && f.leaseOf[pod.UID] == nil && !f.Leased[pod.UID] && !f.Opening[pod.UID] {
			out = append(out, Deletion{Pod: pod, If: Unbound, Run: f.Run.UID})
		}
	}
	return out
}

// leavingOf returns those of some pods, by index, that are suspect, and those there that have a reason to go.
func leavingOf(s *situation, pods []*corev1.Pod, why func(int, *corev1.Pod) string) []Deletion {
	var out []Deletion
	for index, pod := range pods {
		if pod == nil {
			continue
		}
		if wrong, found := suspect(s.facts, pod); found {
			out = append(out, wrong)
		} else if !present(pod) {
			continue
		} else if reason := why(index, pod); reason != "" {
			out = append(out, Deletion{Pod: pod, Notice: noticeFor(s, pod), Why: reason})
		}
	}
	return out
}

const onLostNode = "its node is lost"

// suspect returns the deletion of a pod that something seems to be wrong with: it has lost its node, runs without a
// Lease, or has a Lease and cannot be bound where that says. What has ended well needs no node.
func suspect(f *facts, pod *corev1.Pod) (Deletion, bool) {
	if pod.Status.Phase == corev1.PodSucceeded {
		return Deletion{}, false
	}
	lease, node := f.leaseOf[pod.UID], pod.Spec.NodeName
	if lease != nil && !bound(pod) {
		node = lease.Node()
		if active(pod) && f.Now.Sub(lease.HeldSince()) > f.GangDeadline {
			d := Deletion{Pod: pod, If: Unbound, Node: node, Run: f.Run.UID, Why: "it has a Lease, and is not bound in time"}
			if rank.Theirs(pod) {
				d.Tell = fmt.Sprintf("the scheduler ends the pod: it could not be bound within %s%s", f.GangDeadline,
					whyUnbound(pod))
			}
			return d, true
		}
	}
	switch {
	case node == "":
	case !f.Stands(node):
		return Deletion{Pod: pod, If: NodeLost, Node: node, Why: onLostNode}, true
	case active(pod) && lease == nil && !f.Leased[pod.UID]:
		return Deletion{Pod: pod, If: Unpaid, Node: node, Why: "it runs without a Lease"}, true
	}
	return Deletion{}, false
}
