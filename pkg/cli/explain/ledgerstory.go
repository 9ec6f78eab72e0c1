package explain

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/cli/view"
)

// together is how far apart GPU leases may open or close, one after the other, that are told of as one moment.
const together = 2 * time.Second

// toldByLeases is the story of a Run as its GPU leases tell it: swaps, reclaims, growth, shrinking and all that came
// and went after the start. That a Run starts and completes is told by its conditions.
func toldByLeases(leases []rqv1.Lease) []moment {
	steps := stepsOf(leases)
	var story []moment
	t := view.Tracker{}
	tell := func() {
		for _, h := range t.Take(false) {
			story = append(story, moment{Time: h.Time, What: h.What, Leases: &h})
		}
	}
	type pod struct {
		role  rqv1.LeaseRole
		index int32
	}
	seen := map[pod]bool{}
	for i, lease := range steps {
		if i > 0 && view.TimeOf(lease).Sub(view.TimeOf(steps[i-1]).Time) > together {
			tell()
		}
		p := pod{lease.Spec.Slice.Role, int32(lease.Index())}
		switch {
		case p.role == rqv1.RoleBorrowed:
			t.Saw(lease)
		case lease.Status.ClosureReason == rqv1.ClosedCompleted:
			t.Forget(lease)
		case !lease.Status.Closed && lease.Spec.Reason == rqv1.ReasonStart && !seen[p]:
			t.Hold(lease)
		default:
			t.Saw(lease)
		}
		seen[p] = true
	}
	tell()
	return story
}

// stepsOf lists GPU leases as they opened and, once more, as they closed, in order of time.
func stepsOf(leases []rqv1.Lease) []*rqv1.Lease {
	var steps []*rqv1.Lease
	for i := range leases {
		lease := &leases[i]
		if lease.Status.Closed {
			opened := *lease
			opened.Status = rqv1.LeaseStatus{}
			steps = append(steps, &opened)
		}
		steps = append(steps, lease)
	}
	slices.SortStableFunc(steps, func(a, b *rqv1.Lease) int {
		return cmp.Or(view.TimeOf(a).Compare(view.TimeOf(b).Time), strings.Compare(a.Name, b.Name))
	})
	return steps
}

// lossesOf is when nodes were found to be lost that cost the Run a GPU lease, as far as the nodes' records are about
// that.
func lossesOf(leases []rqv1.Lease, records map[string]string) []moment {
	var story []moment
	told := map[string]bool{}
	for i := range leases {
		lease := &leases[i]
		node := lease.Node()
		if lease.Status.ClosureReason != rqv1.ClosedNodeFailure || told[node] {
			continue
		}
		stamp, why, _ := strings.Cut(records[node], " ")
		lost, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil || lost.Before(lease.Spec.Start.Time) || lost.After(view.TimeOf(lease).Time) {
			continue // it has been lost again since, or a person has written the record
		}
		told[node] = true
		reason, message, _ := strings.Cut(why, " ")
		story = append(story, moment{Time: metav1.NewTime(lost), What: "node " + node + " lost", Reason: reason,
			Message: message})
	}
	return story
}
