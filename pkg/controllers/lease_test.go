package controllers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
)

// TestCloseLeases closes Leases of which one is gone and one has been written since.
func TestCloseLeases(t *testing.T) {
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	open := func(name string) *rqv1.Lease {
		l := closed("b", name)
		l.Namespace, l.Status = "ns", rqv1.LeaseStatus{}
		return l
	}
	kinds := ours(t, open("a"), open("b"))
	read := func(name string) *rqv1.Lease {
		l := &rqv1.Lease{}
		if err := kinds.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: name}, l); err != nil {
			t.Fatal(err)
		}
		return l
	}
	a, behind := read("a"), read("b")
	if err := kinds.Update(t.Context(), read("b")); err != nil {
		t.Fatal(err)
	}
	behind.ResourceVersion = "1"
	var ended []*rqv1.Lease
	for _, l := range []*rqv1.Lease{a, behind, open("gone")} {
		at := metav1.NewMicroTime(noon)
		l.Status = rqv1.LeaseStatus{Closed: true, Ended: &at, ClosureReason: rqv1.ClosedCompleted}
		ended = append(ended, l)
	}
	got, err := leaseCloser{book: book.New(args), client: kinds, lost: func([]string) {}}.CloseLeases(t.Context(), ended)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range got {
		names = append(names, l.Name)
	}
	if diff := cmp.Diff([]string{"a"}, names); diff != "" {
		t.Errorf("closed (-want +got):\n%s", diff)
	}
	if is := []bool{read("a").Status.Closed, read("b").Status.Closed}; !cmp.Equal(is, []bool{true, false}) {
		t.Errorf("stored as closed: %v", is)
	}
}
