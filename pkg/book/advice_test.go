package book_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
)

// A Run that waits says as data what is short, who was asked and what would help; one that runs says nothing of it.
func TestARefusalIsPublishedAsData(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.addNode("n1", "d0")
		w.setBudget("a", "org:a", 8)
		w.submit("run0", "org:a", 1, 2, 8)
		w.settle()
		limit := &rqv1.RefusalLimit{Kind: "concurrency", Max: 8, Left: 8}
		want := &rqv1.RunRefusal{
			Reason: "InsufficientBudget", Owner: "org:a", WantedGPUs: 16, ShortGPUs: 8, Envelope: "a/e", Limit: limit,
			Payers: []rqv1.RefusalPayer{{Step: 1, Relation: rqv1.RelationOwn, Owner: "org:a", Budget: "a", Envelope: "e",
				GPUs:  8,
				Limit: limit, Stops: "concurrency: 8 of 8 GPUs left"}},
			Changes: []rqv1.RefusalChange{{What: "raise envelopes[e].concurrency of Budget a from 8 to 16", GPUs: 16}},
		}
		if diff := cmp.Diff(want, w.Runs["run0"].Status.Refusal); diff != "" {
			w.t.Errorf("while money is short (-want +got):\n%s", diff)
		}
		w.setBudget("a", "org:a", 16)
		w.settle()
		if r := w.Runs["run0"].Status.Refusal; r != nil {
			w.t.Errorf("it runs, and is refused with %+v", r)
		}
	})
}

// Where room is short, payers are told without numbers that change while the Run waits.
func TestARefusalForRoomNamesWhoWouldPay(t *testing.T) {
	tell(t, func(w *world) {
		w.addNode("n0", "d0")
		w.setBudget("a", "org:a", 64)
		w.submit("run0", "org:a", 1, 1, 8)
		w.submit("run1", "org:a", 1, 1, 8)
		w.settle()
		want := []rqv1.RefusalPayer{{Step: 1, Relation: rqv1.RelationOwn, Owner: "org:a", Budget: "a", Envelope: "e",
			GPUs: 8}}
		r := w.Runs["run1"].Status.Refusal
		if r == nil || r.Reason != "InsufficientGPUs" || r.ShortGPUs != 8 || r.Changes != nil {
			w.t.Fatalf("while room is short: %+v", r)
		}
		if diff := cmp.Diff(want, r.Payers); diff != "" {
			w.t.Errorf("payers (-want +got):\n%s", diff)
		}
	})
}
