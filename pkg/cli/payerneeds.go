package cli

import (
	corev1 "k8s.io/api/core/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
	"github.com/davidlangworthy/jobtree/pkg/plan"
	"github.com/davidlangworthy/jobtree/pkg/rank"
)

// podSize is how many GPUs a pod of a Run has, as far as is known beside its spec.resources (R14).
type podSize struct {
	// stated is what the template or the pods request, and fits what the largest node of the type has; 0 when not known.
	stated, fits int
	from         string
}

// podSizeAssumed is where the size of a pod comes from when nobody states it and no node can be looked at: pods of one GPU.
const podSizeAssumed = "assumption"

// templateSize is the size of a pod by the Run itself.
func templateSize(run *rqv1.Run, gpuResource string) podSize {
	switch {
	case run.Spec.Resources.GPUsPerPod != nil:
		return podSize{stated: int(*run.Spec.Resources.GPUsPerPod), from: "spec.resources.gpusPerPod"}
	case run.Spec.Template != nil:
		return podSize{stated: rank.PodGPUs(&run.Spec.Template.Spec, gpuResource), from: "spec.template"}
	}
	return podSize{}
}

// largestNode is the most GPUs that a node of a type has; 0 when there is none.
func largestNode(nodes []corev1.Node, gpuType string, p *payerSearch) int {
	most := int64(0)
	for i := range nodes {
		if n := nodes[i].Status.Allocatable[corev1.ResourceName(p.gpuResource)]; nodes[i].Labels[p.flavorLabel] == gpuType {
			most = max(most, n.Value())
		}
	}
	return int(most)
}

// shape works out the groups and pods of the Run.
func (q *payerQuestion) shape() error {
	if q.size.stated == 0 && q.size.fits == 0 {
		q.size = podSize{fits: 1, from: podSizeAssumed}
	}
	spec := q.run.Spec
	spec.Opportunistic = false // the same shape, whatever it is served
	demand, refused := plan.DemandOf(&spec, q.size.stated, q.size.fits)
	if refused != nil {
		return fail(exitError, "Run %s/%s is never paid for: %s", q.run.Namespace, q.run.Name, refused.Message)
	}
	q.demand = demand
	return nil
}

// withSpares is a width together with the spares of its groups, in GPUs.
func (q *payerQuestion) withSpares(width int) int {
	groups := width / (q.demand.PodsPerGroup * q.demand.GPUsPerPod)
	if !q.demand.Confined {
		groups = 1 // the whole Run, whatever its width
	}
	return width + groups*q.demand.SparesPerGroup*q.demand.GPUsPerPod
}

// wanted is how many GPUs the Run still needs: to start, the widest width that can be paid for, else the narrowest (R16);
// later, the width that it tends to.
func (q *payerQuestion) wanted(payable int) int {
	if q.run.Ended() {
		return 0
	}
	total, held := int(q.run.Spec.Resources.TotalGPUs), q.held()
	m := q.run.Spec.Malleable
	switch {
	case m == nil:
	case phaseOf(&q.run) == rqv1.RunRunning:
		total = int(q.run.Spec.Desired())
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
		sum += int(q.leases[i].GPUs())
	}
	return sum
}

// borrowed is how many GPUs sponsors pay for now.
func (q *payerQuestion) borrowed() int {
	sum := 0
	for i := range q.leases {
		if l := &q.leases[i]; l.Relation() == rqv1.RelationSponsor && l.Spec.Slice.Role != rqv1.RoleBorrowed {
			sum += int(l.GPUs())
		}
	}
	return sum
}

func (q *payerQuestion) ask() budget.Ask {
	claim := plan.ClaimOf(&q.run)
	return budget.Ask{Owner: q.demand.Owner, Flavor: q.demand.Flavor, GPUsPerPod: q.demand.GPUsPerPod, Spares: q.demand.Spares(),
		Run: claim.Run, Funding: claim.Funding, MaxDuration: claim.MaxDuration}
}
