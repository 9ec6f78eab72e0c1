package controllers

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
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
