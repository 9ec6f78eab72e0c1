package ending

import (
	"time"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// BlamedFor is how long a node that has ended a pod, or turned it away, is blamed and left out for it (R33).
const BlamedFor = time.Hour

// Blames reports whether a death is the doing of its node, which is left out for it at an instant.
func Blames(d *rqv1.RunDeath, at time.Time) bool {
	return d.Cause == rqv1.CauseNode && at.Sub(d.At.Time) < BlamedFor
}
