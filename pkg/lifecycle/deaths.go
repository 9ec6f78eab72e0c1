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

// makesWay reports whether a pod that was evicted may go, so that its rank is made anew: its end is on record, in the
// ledger as well as in the Run's status, since nothing else tells of it later.
func (f *facts) makesWay(pod *corev1.Pod) bool {
	return f.evicted(pod) && f.leaseOf[pod.UID] == nil && deathOf(f.Run, pod) != nil
}

// deathOf returns what a Run's status tells of the end of a pod; nil when it does not.
func deathOf(run *rqv1.Run, pod *corev1.Pod) *rqv1.RunDeath {
	deaths := run.Status.Deaths
	at := slices.IndexFunc(deaths, func(d rqv1.RunDeath) bool { return d.Pod == pod.UID })
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
		if e, ended := ending.Of(pod); ended {
			deaths = append(deaths, deathIn(index, pod, e, f.Now))
		}
	}
	return deaths
}

// addDeaths adds deaths to those that a status tells of, as many as it may.
func addDeaths(next *rqv1.RunStatus, deaths []rqv1.RunDeath) {
	next.Deaths = append(next.Deaths, deaths...)
	if over := len(next.Deaths) - rqv1.MostDeaths; over > 0 {
		next.Deaths = slices.Delete(next.Deaths, 0, over)
	}
}

// Lengths that the API allows what is told of an end.
const (
	longestSign  = 128
	longestWords = 512
)

func deathIn(index int, pod *corev1.Pod, e ending.Ending, now time.Time) rqv1.RunDeath {
	at := e.At
	if at.IsZero() {
		at = now
	}
	return rqv1.RunDeath{Pod: pod.UID, Index: int32(index), Node: pod.Spec.NodeName, Cause: e.Cause,
		Sign: Shortened(e.Sign, longestSign), Container: e.Container, ExitCode: e.ExitCode,
		Message: Shortened(e.Message, longestWords), At: metav1.NewTime(at.Truncate(time.Second))}
}

// A rank that its nodes have ended, or turned away, on so many of them within such a time is not to be blamed on nodes
// any more (R33, R34).
const (
	mostNodes = 3
	blamedFor = time.Hour
)

// outcast is a rank that one node after the other has ended or turned away.
type outcast struct {
	index int
	nodes []string
	last  rqv1.RunDeath
}

// outcastOf returns the first rank of a Run that is not tried again on yet another node, or on two in turn; nil when
// there is none.
func outcastOf(run *rqv1.Run, now time.Time) *outcast {
	nodes, times := map[int32][]string{}, map[int32]int{}
	for _, d := range run.Status.Deaths {
		if d.Cause != rqv1.CauseNode || now.Sub(d.At.Time) >= blamedFor {
			continue
		}
		times[d.Index]++
		if !slices.Contains(nodes[d.Index], d.Node) {
			nodes[d.Index] = append(nodes[d.Index], d.Node)
		}
		if len(nodes[d.Index]) >= mostNodes || times[d.Index] >= 2*mostNodes {
			return &outcast{int(d.Index), nodes[d.Index], d}
		}
	}
	return nil
}

// String says what became of the rank.
func (o *outcast) String() string {
	return fmt.Sprintf("rank %d was ended or turned away by %d nodes within %s (%s): %s; it is not tried on another",
		o.index, len(o.nodes), blamedFor, strings.Join(o.nodes, ", "), ending.Words(&o.last))
}

// evictedFrom returns the record of a rank that its node has ended: it goes to another.
func evictedFrom(f *facts, index int) (rank.Replacement, bool) {
	node, lost := f.Lost[index]
	if !lost {
		return rank.Replacement{}, false
	}
	made := rank.Replacement{Lost: node}
	for _, d := range f.Run.Status.Deaths {
		if int(d.Index) == index && d.Node == node && d.Cause == rqv1.CauseNode {
			made.Sign = d.Sign
		}
	}
	return made, true
}

// causes are by whose doing a Lease ends that is closed for a reason, as long as its pod does not say otherwise.
var causes = map[rqv1.ClosureReason]rqv1.EndCause{
	rqv1.ClosedCompleted: rqv1.CauseProgram, rqv1.ClosedDeleted: rqv1.CauseUser,
	rqv1.ClosedNodeFailure: rqv1.CauseNode, rqv1.ClosedEvicted: rqv1.CauseNode,
}

// causeOf returns by whose doing a Lease ends. What is closed for anything else than its pod's end is the scheduler's
// doing: also when a Run ends all of its pods since one has failed.
func causeOf(reason rqv1.ClosureReason, pod *corev1.Pod) rqv1.EndCause {
	if pod != nil && reason == rqv1.ClosedFailed {
		if e, ended := ending.Of(pod); ended {
			return e.Cause
		}
	}
	return cmp.Or(causes[reason], rqv1.CauseScheduler)
}
