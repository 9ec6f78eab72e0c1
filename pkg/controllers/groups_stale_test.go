package controllers

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/group"
)

// TestAGroupThatBeginsIsNotReadAnew: what would be read otherwise by now does not end pods that have their places,
// which neither the Run's status nor the pods show yet.
func TestAGroupThatBeginsIsNotReadAnew(t *testing.T) {
	for _, begun := range []bool{true, false} {
		w := &groupWorld{grouped: newGrouped(t), size: 2}
		w.named("o")
		w.comes("a", "payer")
		w.comes("b", "payer")
		w.want("it is new", inGroup("x", "payer"), "create")
		w.looks(inGroup("x", "payer"))
		w.ranks()
		if begun && !w.lead() {
			t.Fatal("the group's first pod has no place")
		}
		for _, pod := range w.unbound() { // somebody mends what the pods say
			pod.Annotations[rqv1.AnnotationMaxDuration] = "2h"
			w.changes(pod)
		}
		var want []string
		if !begun {
			want = []string{"delete"}
		}
		got, after := w.looks(inGroup("x", "payer"))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("begun %v: Runs were written so (-want +got):\n%s", begun, diff)
		}
		if begun && after != settles {
			t.Errorf("it is looked at again after %s", after)
		}
		if node := w.book.Assigned("uid1"); begun != (node != "") {
			t.Errorf("begun %v: the first pod is to go to %q", begun, node)
		}
	}
}

// TestAStaleRunThatIsNotDeleted: a deletion that is refused has the Run's pods get their places, and one of a Run that
// is gone already does not bring it back.
func TestAStaleRunThatIsNotDeleted(t *testing.T) {
	for name, err := range map[string]error{"refused": broken500, "gone": notFound} {
		w := &groupWorld{grouped: newGrouped(t), size: 2}
		w.named("o")
		w.comes("a", "payer")
		w.comes("b", "payer")
		w.want("it is new", inGroup("x", "payer"), "create")
		w.looks(inGroup("x", "payer"))
		w.ranks()
		for _, pod := range w.unbound() {
			pod.Annotations[rqv1.AnnotationMaxDuration] = "2h"
			w.changes(pod)
		}
		run := w.run()
		w.faults = append(w.faults, fault{on: "delete runs", err: err, once: true})
		if name == "gone" {
			w.book.DeleteRun(run)
		}
		_, got := w.groups.look(t.Context(), group.Of(inGroup("x", "payer")).Key)
		if name == "refused" && got == nil {
			t.Errorf("%s: nobody is told", name)
		}
		if _, refusal := w.book.Place("uid1", w.clock.Now()); (refusal == nil) != (name == "refused") {
			t.Errorf("%s: the first pod gets a place: %v", name, refusal == nil)
		}
	}
}
