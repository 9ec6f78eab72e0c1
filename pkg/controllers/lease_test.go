package controllers

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	got, err := leaseWriter{book: book.New(args), client: kinds, lost: func([]string) {}}.CloseLeases(t.Context(), ended)
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

// TestLeasesThatPodsGoOnBy: what is returned is what is stored, whatever the answer was, and a refusal says that there
// is none.
func TestLeasesThatPodsGoOnBy(t *testing.T) {
	asked := closed("b", "x-2")
	asked.UID, asked.Status = "", rqv1.LeaseStatus{}
	for name, test := range map[string]struct {
		stored bool // under its name, by another
		faults []fault
		opened bool
		err    error
	}{
		"written":                      {opened: true},
		"written, and the answer lost": {faults: []fault{{on: "create leases", err: broken500, stored: true}}, opened: true},
		"there":                        {stored: true, opened: true},
		"refused":                      {faults: []fault{{on: "create leases", err: forbidden}}, err: forbidden},
		"refused, and there":           {stored: true, faults: []fault{{on: "create leases", err: forbidden}}, opened: true},
		"not reached":                  {faults: []fault{{on: "create leases", err: broken500}}, err: broken500},
	} {
		s := newServer(t)
		if test.stored {
			other := asked.DeepCopy()
			other.Spec.Payer.Budget = "another"
			if err := s.kinds.Create(t.Context(), other); err != nil {
				t.Fatal(err)
			}
		}
		s.faults = test.faults
		w := leaseWriter{client: s.kinds}
		is, err := w.OpenLease(t.Context(), asked.DeepCopy())
		if !errors.Is(err, test.err) || (err == nil) != test.opened || (is != nil) != test.opened {
			t.Errorf("%s: %v, %v", name, is, err)
		}
		if is != nil && (is.UID == "" || (is.Spec.Payer.Budget == "another") != test.stored) {
			t.Errorf("%s: returned is %+v", name, is)
		}
		stored, err := w.ReadLease(t.Context(), client.ObjectKeyFromObject(asked))
		if err != nil || (stored != nil) != test.opened {
			t.Errorf("%s: stored is %v, %v", name, stored, err)
		}
	}
}

// TestARefusalToReadRefusesNoLease: whether a Lease is there is not known as long as it cannot be read.
func TestARefusalToReadRefusesNoLease(t *testing.T) {
	s := newServer(t)
	s.faults = []fault{{on: "create leases", err: forbidden}, {on: "get leases", err: forbidden}}
	asked := closed("b", "x-2")
	asked.UID, asked.Status = "", rqv1.LeaseStatus{}
	is, err := leaseWriter{client: s.kinds}.OpenLease(t.Context(), asked)
	if is != nil || err == nil || apierrors.IsForbidden(err) {
		t.Errorf("%v, %v", is, err)
	}
}
