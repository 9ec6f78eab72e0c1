package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/budget"
)

// What is published of a refusal is bounded, and GPU-hours are counted in whole ones.
func TestPublished(t *testing.T) {
	r := &Refusal{Reason: InsufficientGPUHours, Owner: "org:a", WantedGPUs: 16, ShortGPUs: 8,
		Envelope: budget.Key{Budget: "b", Envelope: "e"}, Limit: budget.Limit{Kind: budget.GPUHours,
			Max: 100 * int64(budget.GPUHour), Left: 5*int64(budget.GPUHour) + 1},
		Rejected: &Rejection{Nodes: 2, Node: "n0", Rule: "Insufficient cpu"}, Advice: &Advice{}}
	for range 20 {
		r.Advice.Payers = append(r.Advice.Payers, Payer{Key: r.Envelope, Owner: "org:a", Relation: rqv1.RelationOwn,
			Limit: r.Limit})
		r.Advice.Changes = append(r.Advice.Changes, budget.Change{What: "wait", GPUs: 16})
	}
	got := r.Published()
	if len(got.Payers) != rqv1.RefusalPayers || len(got.Changes) != rqv1.RefusalChanges {
		t.Errorf("%d payers and %d changes are told", len(got.Payers), len(got.Changes))
	}
	limit := &rqv1.RefusalLimit{Kind: "maxGPUHours", Max: 100, Left: 5}
	want := &rqv1.RunRefusal{Reason: "InsufficientGPUHours", Owner: "org:a", WantedGPUs: 16, ShortGPUs: 8, Envelope: "b/e",
		Limit: limit,
		Node:  "n0", Rule: "Insufficient cpu",
		Payers: []rqv1.RefusalPayer{{Step: 1, Relation: rqv1.RelationOwn, Owner: "org:a", Budget: "b", Envelope: "e",
			Limit: limit,
			Stops: "maxGPUHours: 5.00000 of 100.00000 GPU-hours left, less than the next pod takes"}},
		Changes: []rqv1.RefusalChange{{What: "wait", GPUs: 16}}}
	got.Payers, got.Changes = got.Payers[:1], got.Changes[:1]
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
}
