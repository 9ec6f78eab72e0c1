package ending

import (
	"strings"
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// BlamedFor is how long a node that has ended a pod, or turned it away, is blamed and left out for it (R33).
const BlamedFor = time.Hour

// Blames reports whether a death is the doing of its node, which is left out for it at an instant. Whoever is evicted
// from it, as by a drain, is so for what comes, and not for what the node has done.
func Blames(d *rqv1.RunDeath, at time.Time) bool {
	evicted := d.Sign == "EvictionByEvictionAPI" || d.Sign == "DeletionByTaintManager"
	return d.Cause == rqv1.CauseNode && !evicted && at.Sub(d.At.Time) < BlamedFor
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
