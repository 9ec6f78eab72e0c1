package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/ending"
	"github.com/davidlangworthy/jobtree/pkg/rank"
	"github.com/davidlangworthy/jobtree/pkg/restart"
)

// evicted reports whether a pod ended by the doing of its node, which stands, or of what keeps it: its rank is lost,
// and the Run is not to blame (R33).
func (f *facts) evicted(pod *corev1.Pod) bool {
	if !present(pod) || !bound(pod) || !f.Stands(pod.Spec.NodeName) {
		return false
	}
	e, ended := ending.Of(pod)
	return ended && e.Cause == rqv1.CauseNode
}

// broken reports whether a device of a rank that runs is broken: the rank is lost, and its node is not (R25).
func (f *facts) broken(pod *corev1.Pod) bool {
	return active(pod) && bound(pod) && f.Broken[pod.UID] && f.Stands(pod.Spec.NodeName)
}

// leavesDevice reports whether a rank goes since a device of it is broken: the status tells of it.
func (f *facts) leavesDevice(pod *corev1.Pod) bool {
	return f.broken(pod) && f.onRecord(pod)
}

// wasEvicted reports whether a Lease was of a rank that has gone by its node's doing, as the status tells, or the book
// where that has no room or was not written in time: a device of it was broken, or it was evicted. That spares and
// shards were told to go nobody says but the status.
func (f *facts) wasEvicted(lease *rqv1.Lease) bool {
	return f.toldEvicted(lease) || f.endedByNode(lease) ||
		lease.Spec.Slice.Role == rqv1.RoleActive && saysRunning(f.Run) && f.wordOfEviction(lease) != ""
}

// endedByNode reports whether the pod of a Lease is gone that its node had ended, or turned away. A spare or a shard
// that people had leave may be there again.
func (f *facts) endedByNode(lease *rqv1.Lease) bool {
	left := f.Left[lease.PodUID()]
	if left == nil {
		return false
	}
	e, failed := ending.Of(left)
	return failed && e.Cause == rqv1.CauseNode &&
		(lease.Spec.Slice.Role == rqv1.RoleActive || !ending.ByPeople(e.Sign))
}

// wordOfEviction returns the word by which the pod of a Lease was told to go for its node's sake, as the book tells or,
// to who has not seen it before it had ended, the pod itself; empty when it was not.
func (f *facts) wordOfEviction(lease *rqv1.Lease) string {
	var e ending.Ending
	if left := f.Left[lease.PodUID()]; left != nil {
		e, _ = ending.Removed(left)
	} else if pod := f.podOf[lease.PodUID()]; pod != nil {
		e, _ = ending.Evicted(pod)
	}
	return e.Sign
}

// toldEvicted reports whether the status tells so.
func (f *facts) toldEvicted(lease *rqv1.Lease) bool {
	return f.toldOf(lease, func(d *rqv1.RunDeath) bool { return d.Cause == rqv1.CauseNode })
}

// makesWay reports whether a pod that was evicted may go, so that its rank is made anew: its end is on record, in the
// ledger as well as in the Run's status, since nothing else tells of it later.
func (f *facts) makesWay(pod *corev1.Pod) bool {
	return f.evicted(pod) && f.leaseOf[pod.UID] == nil && f.onRecord(pod)
}

// onRecord reports whether a Run's status tells of the end of a pod as far as it has room: one that is full need not,
// since others told more.
func (f *facts) onRecord(pod *corev1.Pod) bool {
	return deathOf(f.Run, pod) != nil || f.full()
}

// full reports whether the Run's status may tell of no more deaths.
func (f *facts) full() bool { return len(f.Run.Status.Deaths) >= f.mostDeaths() }

// toldOf reports whether the Run's status tells of such a death in the pod that a Lease is of.
func (f *facts) toldOf(lease *rqv1.Lease, such func(*rqv1.RunDeath) bool) bool {
	deaths, pod := f.Run.Status.Deaths, lease.PodUID()
	for i := range deaths {
		if deaths[i].Pod == pod && such(&deaths[i]) {
			return true
		}
	}
	return false
}

// deathOf returns what a Run's status tells of the end of a pod; nil when it does not.
func deathOf(run *rqv1.Run, pod *corev1.Pod) *rqv1.RunDeath { return deathAfter(run, pod, 0) }

// deathAfter returns what a Run's status tells of the death in a pod after which its kubelet had started containers
// again so often; nil when it does not.
func deathAfter(run *rqv1.Run, pod *corev1.Pod, restarts int32) *rqv1.RunDeath {
	deaths := run.Status.Deaths
	at := slices.IndexFunc(deaths, func(d rqv1.RunDeath) bool { return d.Pod == pod.UID && d.Restarts == restarts })
	if at < 0 {
		return nil
	}
	return &deaths[at]
}

// untoldDeaths returns how ranks ended of which the status does not tell yet.
func untoldDeaths(s *situation) (deaths []rqv1.RunDeath) {
	f := s.facts
	for index, pod := range s.roster.ranks {
		if pod == nil || !bound(pod) || !f.Stands(pod.Spec.NodeName) || s.cuts.doom(pod) || deathOf(f.Run, pod) != nil {
			continue
		}
		e, ended := ownEnd(pod)
		if !ended && saysRunning(f.Run) {
			e, ended = ending.Evicted(pod)
		}
		if !ended {
			e, ended = f.lateEnd(pod)
		}
		if ended && !(s.restarts.rules.Limit > 0 && f.fell(pod)) {
			deaths = append(deaths, deathIn(index, pod, e, f.Now))
		}
	}
	for index, pod := range s.roster.ranks {
		if f.broken(pod) && !s.cuts.doom(pod) && deathOf(f.Run, pod) == nil {
			e, _ := ending.Unhealthy(pod)
			deaths = append(deaths, deathIn(index, pod, e, f.Now))
		}
	}
	deaths = append(deaths, s.untoldOfGone()...)
	deaths = append(deaths, s.restarts.verdict.Deaths...)
	slices.SortStableFunc(deaths, func(a, b rqv1.RunDeath) int { return a.At.Compare(b.At.Time) })
	return deaths
}

// untoldOfGone returns likewise how ranks were ended for their nodes' sake whose pods are gone: somebody has deleted
// these since, and their Leases are open.
func (s *situation) untoldOfGone() (deaths []rqv1.RunDeath) {
	f := s.facts
	for _, lease := range f.Leases {
		left, part := f.Left[lease.PodUID()], rank.Held(lease)
		if left == nil || f.podOf[lease.PodUID()] != nil || lease.Spec.RunRef.UID != f.Run.UID || part.Spare ||
			lease.Spec.Slice.Role != rqv1.RoleActive || !saysRunning(f.Run) && !f.endedByNode(lease) ||
			!f.Stands(lease.Node()) || s.cuts.of(lease) != nil || deathOf(f.Run, left) != nil {
			continue
		}
		if e, ended := ending.Removed(left); ended {
			deaths = append(deaths, deathIn(part.Index, left, e, f.Now))
		}
	}
	slices.SortFunc(deaths, func(a, b rqv1.RunDeath) int { return cmp.Compare(a.Index, b.Index) })
	return deaths
}

// ownEnd returns how a pod ended that failed; false for one that has not, and for one that was told to go and whose
// node did not end it: it is who told it so who has done it, not its program, whatever signal that died of.
func ownEnd(pod *corev1.Pod) (ending.Ending, bool) {
	if pod == nil {
		return ending.Ending{}, false
	}
	e, ended := ending.Of(pod)
	_, told := rank.GoesBy(pod)
	return e, ended && (!told || e.Cause == rqv1.CauseNode)
}

// addDeaths adds deaths to those that a status tells of, as many as it may. Which those are follows from the deaths
// alone, so that what there was no room for is not told the next time in place of what has been.
func addDeaths(next *rqv1.RunStatus, s *situation, deaths []rqv1.RunDeath) {
	all, most := slices.Concat(next.Deaths, deaths), s.facts.mostDeaths()
	if len(all) <= most {
		next.Deaths = all
		return
	}
	telling, restarts := slices.Clone(all), cmp.Or(s.restarts.verdict.Restarts, s.facts.Run.Status.Restarts)
	if s.hasEnded() {
		slices.SortStableFunc(telling, s.facts.closerToTheEnd)
	} else {
		slices.SortStableFunc(telling, moreTelling(all, restarts, s.facts.Now))
	}
	next.Deaths = slices.DeleteFunc(all, func(d rqv1.RunDeath) bool {
		return !tellsOf(telling[:most], &d)
	})
}

// tellsOf reports whether a death is among those that are told of.
func tellsOf(deaths []rqv1.RunDeath, d *rqv1.RunDeath) bool {
	return slices.ContainsFunc(deaths, func(o rqv1.RunDeath) bool { return o.Pod == d.Pod && o.Restarts == d.Restarts })
}

// closerToTheEnd puts deaths that tell why a Run has ended first: of pods that are still there, in the order in which
// they are told or died, since who died later may have died of that; and then the latest of earlier ones.
func (f *facts) closerToTheEnd(a, b rqv1.RunDeath) int {
	class := func(d *rqv1.RunDeath) int {
		switch pod := f.podOf[d.Pod]; {
		case pod == nil:
			return 2
		case deathOf(f.Run, pod) == nil:
			return 1
		}
		return 0
	}
	if class(&a) == 2 && class(&b) == 2 {
		return b.At.Compare(a.At.Time)
	}
	return class(&a) - class(&b)
}

// moreTelling puts deaths first that are to be remembered: the first ones of incidents that count together, the latest
// of them before others, since who is blamed again follows from them; then others of an incident that is not over, by
// which ranks are started again; then those of ranks that nodes have ended most often of late, and of those the rank's
// that died last: a rank that is turned away wherever it goes is known by what is told of it, however many others are.
// What a program did before, and nodes long ago, is for people to read.
func moreTelling(all []rqv1.RunDeath, restarts *rqv1.RunRestartsStatus, now time.Time) func(a, b rqv1.RunDeath) int {
	times, last := map[int32]int{}, map[int32]time.Time{}
	for _, d := range all {
		if ending.Blames(&d, now) {
			times[d.Index]++
		}
		if d.At.After(last[d.Index]) {
			last[d.Index] = d.At.Time
		}
	}
	weight := func(d *rqv1.RunDeath) int {
		switch {
		case restart.Counts(d, restarts):
			return len(all) + 4
		case restart.Lasts(d, restarts):
			return len(all) + 3
		case ending.Blames(d, now):
			return times[d.Index] + 2
		case d.First:
			return 2
		case d.Cause == rqv1.CauseNode:
			return 1
		}
		return 0
	}
	latest := func(d *rqv1.RunDeath) int32 {
		if !d.First {
			return 0
		}
		return d.Incident
	}
	return func(a, b rqv1.RunDeath) int {
		return cmp.Or(weight(&b)-weight(&a), int(latest(&b)-latest(&a)), last[b.Index].Compare(last[a.Index]),
			cmp.Compare(a.Index, b.Index), b.At.Compare(a.At.Time), cmp.Compare(a.Pod, b.Pod))
	}
}

// Lengths that the API allows what is told of an end.
const (
	longestSign  = 128
	longestWords = 512
)

// deathIn returns what is told of an end: that it was after its pod was made and is over, whatever its kubelet's clock
// says.
func deathIn(index int, pod *corev1.Pod, e ending.Ending, now time.Time) rqv1.RunDeath {
	at := cmp.Or(e.At, lastChange(pod), now)
	if made := pod.CreationTimestamp.Time; at.Before(made) {
		at = made
	}
	if at.After(now) {
		at = now
	}
	return rqv1.RunDeath{Pod: pod.UID, Index: int32(index), Node: pod.Spec.NodeName, Cause: e.Cause,
		Sign: Shortened(e.Sign, longestSign), Container: e.Container, ExitCode: e.ExitCode,
		Message: Shortened(e.Message, longestWords), At: metav1.NewTime(at.Truncate(time.Second))}
}

// lastChange returns when the conditions of a pod changed last, or else when it was taken or made: it ended no sooner.
// Of one pod it is the same whenever it is asked.
func lastChange(pod *corev1.Pod) (at time.Time) {
	for _, c := range pod.Status.Conditions {
		if c.LastTransitionTime.After(at) {
			at = c.LastTransitionTime.Time
		}
	}
	if began := pod.Status.StartTime; at.IsZero() && began != nil {
		at = began.Time
	}
	return cmp.Or(at, pod.CreationTimestamp.Time)
}

// mostNodes is on how many nodes a rank may be ended, or turned away, within ending.BlamedFor: that is not to be blamed
// on nodes any more (R33, R34).
const mostNodes = 3

// outcast is a rank that one node after the other has ended or turned away.
type outcast struct {
	index, times int
	nodes        []string
	last         rqv1.RunDeath
}

// outcast returns the first rank that is not tried again on yet another node, or on two in turn, and without which the
// Run cannot go on: a wider one becomes narrower when the nodes are used up (R27). It is nil when there is none.
func (t *footing) outcast() *outcast {
	nodes, times := map[int32][]string{}, map[int32]int{}
	for _, d := range t.facts.Run.Status.Deaths {
		if !ending.Blames(&d, t.facts.Now) || int(d.Index) >= t.width.shape.LeastPods {
			continue
		}
		times[d.Index]++
		if !slices.Contains(nodes[d.Index], d.Node) {
			nodes[d.Index] = append(nodes[d.Index], d.Node)
		}
		if len(nodes[d.Index]) >= mostNodes || times[d.Index] >= 2*mostNodes {
			return &outcast{int(d.Index), times[d.Index], nodes[d.Index], d}
		}
	}
	return nil
}

// String says what became of the rank.
func (o *outcast) String() string {
	by := fmt.Sprintf("by %d nodes", len(o.nodes))
	if len(o.nodes) < mostNodes {
		by = fmt.Sprintf("%d times", o.times)
	}
	return fmt.Sprintf("rank %d was ended or rejected %s within %s (%s): %s; it is not tried again",
		o.index, by, ending.BlamedFor, strings.Join(o.nodes, ", "), ending.Words(&o.last))
}

// evictedFrom returns the record of a rank that its node has ended: it goes to another.
func evictedFrom(f *facts, index int) (rank.Replacement, bool) {
	node, lost := f.Lost[index]
	if !lost {
		return rank.Replacement{}, false
	}
	if f.Moved[index] {
		return rank.Replacement{Lost: node, Sign: bySign}, true
	}
	sign := signAt(f, index, node)
	if sign == "" && f.Stands(node) {
		sign = string(rqv1.ClosedEvicted) // the status had no room for the word
	}
	return rank.Replacement{Lost: node, Sign: sign}, true
}

// signAt returns the word by which it is known that a node has ended a rank; empty when the status does not tell.
func signAt(f *facts, index int, node string) (sign string) {
	for _, d := range f.Run.Status.Deaths {
		if int(d.Index) == index && d.Node == node && d.Cause == rqv1.CauseNode {
			sign = d.Sign
		}
	}
	return sign
}

// causes are by whose doing a Lease ends that is closed for a reason, as long as its pod does not say otherwise.
var causes = map[rqv1.ClosureReason]rqv1.EndCause{
	rqv1.ClosedCompleted: rqv1.CauseProgram, rqv1.ClosedDeleted: rqv1.CauseUser,
	rqv1.ClosedNodeFailure: rqv1.CauseNode, rqv1.ClosedEvicted: rqv1.CauseNode, rqv1.ClosedSuspended: rqv1.CauseUser,
}

// causeOf returns by whose doing a Lease ends. What is closed for anything else than its pod's end is the scheduler's
// doing: also when a Run ends all of its pods since one has failed. A rank that was not ready in time is ended after
// that was told.
func (f *facts) causeOf(reason rqv1.ClosureReason, lease *rqv1.Lease) rqv1.EndCause {
	if reason == rqv1.ClosedFailed || reason == rqv1.ClosedDeleted {
		if e, ended := ownEnd(f.podOf[lease.PodUID()]); ended {
			return e.Cause
		}
		if f.Run != nil && (f.movedOn(lease) || f.wasLate(lease)) {
			return rqv1.CauseProgram
		}
	}
	return cmp.Or(causes[reason], rqv1.CauseScheduler)
}
