package cli

import (
	"slices"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// podSizeAssumed is where the size of a pod comes from when nobody states it and no node can be looked at.
const podSizeAssumed = "assumption"

// sizePods works out the GPUs of a pod that nobody states: the largest number that divides the group and fits a node
// (R14); without nodes to look at, 1.
func (q *payerQuestion) sizePods() {
	if q.pods > 0 {
		return
	}
	group := int(q.run.Spec.Resources.TotalGPUs)
	if l := q.run.Spec.Locality; l != nil && l.GroupGPUs != nil {
		group = int(*l.GroupGPUs)
	}
	divides := []int{group, q.spares()}
	if m := q.run.Spec.Malleable; m != nil {
		divides = append(divides, int(m.MinTotalGPUs), int(m.StepGPUs))
	}
	for q.pods = max(1, min(group, q.nodeGPUs)); q.pods > 1; q.pods-- {
		if !slices.ContainsFunc(divides, func(n int) bool { return n%q.pods != 0 }) {
			break
		}
	}
	q.podsFrom = "the nodes"
	if q.nodeGPUs == 0 {
		q.podsFrom = podSizeAssumed
	}
}

// spares is the GPUs that stand by in each group.
func (q *payerQuestion) spares() int {
	switch s := &q.run.Spec; {
	case s.SparesPerGroup != nil:
		return int(*s.SparesPerGroup)
	case s.Spares != nil:
		return int(*s.Spares)
	}
	return 0
}

// withSpares is a width together with the spares of its groups.
func (q *payerQuestion) withSpares(width int) int {
	groups := 1
	if l := q.run.Spec.Locality; l != nil && l.GroupGPUs != nil {
		groups = width / int(*l.GroupGPUs)
	}
	return width + groups*q.spares()
}

// wanted is how many GPUs the Run still needs: to start, the widest width that can be paid for, else the narrowest (R16);
// later, the width that it tends to.
func (q *payerQuestion) wanted(payable int) int {
	if ended(&q.run) {
		return 0
	}
	total, held := int(q.run.Spec.Resources.TotalGPUs), q.held()
	m := q.run.Spec.Malleable
	switch {
	case m == nil:
	case phaseOf(&q.run) == rqv1.RunRunning:
		if total = int(m.MaxTotalGPUs); m.DesiredTotalGPUs != nil {
			total = int(*m.DesiredTotalGPUs)
		}
	default:
		for total > int(m.MinTotalGPUs) && q.withSpares(total)-held > payable {
			total -= int(m.StepGPUs)
		}
	}
	return max(0, q.withSpares(total)-held)
}

// held is how many GPUs are paid for now, spares included.
func (q *payerQuestion) held() int {
	sum := 0
	for i := range q.leases {
		sum += int(gpusOf(&q.leases[i]))
	}
	return sum
}
