package lifecycle

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/forecast"
)

// TestAConflictSetIsWrittenAgainWhenItSaysSomethingElse and not for odds that have hardly changed.
func TestAConflictSetIsWrittenAgainWhenItSaysSomethingElse(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	was := []rqv1.Conflict{
		{Run: rqv1.NamespacedName{Namespace: "ns", Name: "x"}, Action: rqv1.CutShrink, GPUs: 8, Probability: "0.5"},
		{Run: rqv1.NamespacedName{Namespace: "ns", Name: "y"}, Action: rqv1.CutLottery, GPUs: 16, Probability: "0.25"},
	}
	for name, test := range map[string]struct {
		change func(*rqv1.Conflict)
		writes bool
	}{
		"nothing":             {func(*rqv1.Conflict) {}, false},
		"hardly other odds":   {func(c *rqv1.Conflict) { c.Probability = "0.29" }, false},
		"other odds":          {func(c *rqv1.Conflict) { c.Probability = "0.31" }, true},
		"more GPUs":           {func(c *rqv1.Conflict) { c.GPUs = 24 }, true},
		"another Run":         {func(c *rqv1.Conflict) { c.Run.Name = "z" }, true},
		"another kind of cut": {func(c *rqv1.Conflict) { c.Action = rqv1.CutDropSpare }, true},
	} {
		run := &rqv1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run", UID: "uid"},
			Status: rqv1.RunStatus{Phase: rqv1.RunPending}}
		promise := &forecast.Promise{At: now.Add(time.Minute), Cuts: true, Conflicts: slices.Clone(was)}
		o := Observed{Objects: book.Objects{Run: run}, Now: now, Look: book.Look{
			Prospect: book.Prospect{Promise: promise}, Commitments: map[types.UID]string{"": "a"}}}
		o.Reservations = []*rqv1.Reservation{newReservation(&o)}
		o.Reservations = []*rqv1.Reservation{Reserve(o).Reservation}
		promise.Conflicts = slices.Clone(was)
		test.change(&promise.Conflicts[1])
		w := Reserve(o)
		if (w != nil) != test.writes {
			t.Errorf("%s: %+v is written", name, w)
		} else if w != nil {
			if diff := cmp.Diff(promise.Conflicts, w.Reservation.Status.ConflictSet); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}
