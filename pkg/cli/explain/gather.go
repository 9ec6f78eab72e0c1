package explain

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// explain tells a Run's story.
func explain(run *rqv1.Run, from evidence) explanation {
	e := explanation{
		Run:         run.Name,
		Namespace:   run.Namespace,
		Owner:       run.Spec.Owner,
		Phase:       view.PhaseOf(run),
		Message:     run.Status.Message,
		Suspended:   view.StandingOf(run) == view.Suspended,
		Forecast:    run.Status.Forecast,
		Ready:       run.Status.Ready,
		Attempt:     run.Status.Attempt,
		Timeouts:    run.Status.Timeouts,
		PlaceSince:  run.Status.PlaceSince,
		Maintenance: view.MaintenanceOf(run),
		Looked:      view.LookedAt(run),
		Asks:        requestOf(run),
		Width:       run.Status.Width,
		Waits:       view.WaitOf(run, from.now),
		At:          metav1.NewTime(from.now),
		Story:       storyOf(run, from.events, from.now),
		Events:      eventsOf(from.events),
	}
	// of an earlier Run of the same name
	earlier := func(lease rqv1.Lease) bool { return lease.Spec.RunRef.UID != run.UID }
	leases := slices.DeleteFunc(slices.Clone(from.leases), earlier)
	e.Story = slices.Concat(e.Story, lossesOf(leases, from.nodes.lost), toldByLeases(leases))
	e.reserve(run, from)
	for i := range leases {
		if lease := &leases[i]; lease.Status.Closed {
			e.Gave, e.Lost = addGivenUp(e.Gave, lease), addLost(e.Lost, lease)
		} else {
			e.Holds = addHolding(e.Holds, lease, from.nodes.domains)
		}
	}
	slices.SortStableFunc(e.Holds, func(a, b holding) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), strings.Compare(string(a.Role), string(b.Role)),
			strings.Compare(a.Domain, b.Domain))
	})
	slices.SortFunc(e.Gave, func(a, b givenUp) int { return strings.Compare(string(a.Reason), string(b.Reason)) })
	slices.SortFunc(e.Lost, func(a, b lostWork) int { return strings.Compare(string(a.Cause), string(b.Cause)) })
	e.Used = usedBy(leases, from.now)
	e.Spares, e.Shards = sparesHeld(run, e.Holds), shardsOf(run, leases)
	return e
}

func requestOf(run *rqv1.Run) request {
	r := request{GPUs: run.Spec.Resources.TotalGPUs, GPUType: run.Spec.Resources.GPUType,
		SparesPerGroup: run.Spec.GroupSpares(),
		Malleable:      run.Spec.Malleable, Opportunistic: run.Spec.Opportunistic,
		PriorityClass: run.Spec.PriorityClassName, Priority: run.Status.Priority}
	if perPod := run.Spec.Resources.GPUsPerPod; perPod != nil {
		r.GPUsPerPod = *perPod
	}
	if run.Spec.Locality != nil && run.Spec.Locality.GroupGPUs != nil {
		r.GroupGPUs = *run.Spec.Locality.GroupGPUs
	}
	return r
}
