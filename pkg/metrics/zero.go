package metrics

import (
	"k8s.io/component-base/metrics"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/nodeloss"
)

// countFromZero has what alerts rest on be served before it happens for the first time: in the first value of a series
// Prometheus sees no increase.
func countFromZero() {
	zero(NodesLost, nodeloss.Deleted, nodeloss.OutOfService, nodeloss.Condition, nodeloss.NotReady, nodeloss.Stale)
	zero(CutsInVain, rqv1.CanceledVictimStayed, rqv1.CanceledNodesRejected, rqv1.CanceledRoomTaken,
		rqv1.CanceledCalledOff, rqv1.CanceledSuspended)
}

// zero makes the series of a counter with one label, by the label's values.
func zero[T ~string](of *metrics.CounterVec, values ...T) {
	for _, value := range values {
		of.WithLabelValues(string(value)).Add(0)
	}
}
