package ending

import (
	"slices"
	"strings"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// BlamedFor is how long a node that has ended a pod, or turned it away, is blamed and avoided for it (R27, R33).
const BlamedFor = time.Hour

// again is within which time a second eviction from one node is about that node (R27).
const again = 10 * time.Minute

// Blames reports whether a death is the doing of its node, which is avoided for it at an instant. Whoever is evicted
// from it, as by a drain, is so for what comes, and not for what the node has done.
func Blames(d *rqv1.RunDeath, at time.Time) bool {
	return d.Cause == rqv1.CauseNode && !ByPeople(d.Sign) && at.Sub(d.At.Time) < BlamedFor
}

// ByPeople reports whether a sign says that a pod was told to go by people, or for a taint that somebody has set: its
// node is at no fault (R27).
func ByPeople(sign string) bool {
	return sign == "EvictionByEvictionAPI" || sign == "DeletionByTaintManager"
}

// Avoided returns the nodes that a rank is to avoid at an instant for what has become of its pods there, in order:
// those that are blamed, and those from which it was evicted twice within ten minutes (R27). Those that have ended it
// or turned it away twice within that time are shut as well: it does not go there even where there is no other, again
// and again.
func Avoided(deaths []rqv1.RunDeath, index int, at time.Time) (avoided, shut []string) {
	for i := range deaths {
		d := &deaths[i]
		if int(d.Index) != index || d.Cause != rqv1.CauseNode || at.Sub(d.At.Time) >= BlamedFor {
			continue
		}
		repeats := slices.ContainsFunc(deaths, func(other rqv1.RunDeath) bool {
			return other.Pod != d.Pod && other.Index == d.Index && other.Node == d.Node &&
				ByPeople(other.Sign) == ByPeople(d.Sign) && d.At.Sub(other.At.Time).Abs() < again
		})
		if repeats && !ByPeople(d.Sign) {
			shut = append(shut, d.Node)
		}
		if repeats || !ByPeople(d.Sign) {
			avoided = append(avoided, d.Node)
		}
	}
	slices.Sort(avoided)
	slices.Sort(shut)
	return slices.Compact(avoided), slices.Compact(shut)
}

// Suspect reports whether a death speaks against its node: that has turned a pod away, or lost track of it, for a cause
// of its own. Who is evicted for a node's sake, or goes down with it as it is switched off, says nothing of its health,
// nor does a pod that asks for CPUs or devices which cannot be aligned on any such node.
func Suspect(d *rqv1.RunDeath) bool {
	if d.Cause != rqv1.CauseNode {
		return false
	}
	switch d.Sign {
	case "Unhealthy", "UnexpectedAdmissionError", "InvalidNodeInfo", "ContainerStatusUnknown":
		return true
	}
	return strings.HasPrefix(d.Sign, "OutOf")
}
