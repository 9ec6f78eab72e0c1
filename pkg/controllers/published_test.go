package controllers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
	"github.com/davidlangworthy/jobtree/pkg/published"
)

// TestWhatEverybodyMayRead is written when it changes and never else, by a process that begins, too, and again after a
// write that failed or once somebody has deleted it.
func TestWhatEverybodyMayRead(t *testing.T) {
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t)
	p := &publisher{book: book.New(args), kube: s.kube, args: args}
	publish := func(what string, want ...string) {
		t.Helper()
		s.kube.ClearActions()
		err := p.publish(t.Context())
		var did []string
		for _, action := range s.kube.Actions() {
			did = append(did, action.GetVerb())
		}
		if diff := cmp.Diff(want, did); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +done):\n%s", what, err, diff)
		}
	}
	publish("there is none", "get", "update", "create")
	publish("nothing has changed")
	p.book.SetNode(nodeOf8("n0"))
	publish("a node has come", "update")
	publish("nothing has changed again")

	next := &publisher{book: book.New(args), kube: s.kube, args: args}
	next.book.SetNode(nodeOf8("n0"))
	p = next
	publish("another process finds it as it is", "get")
	publish("and so leaves it")
	p.book.SetNode(nodeOf8("n1"))
	s.faults = []fault{{on: "update configmaps", err: forbidden}}
	if err := p.publish(t.Context()); err == nil {
		t.Error("a failed write is not told")
	}
	s.faults = nil
	publish("it is written after all", "get", "update")
	if err := s.kube.CoreV1().ConfigMaps(Namespace).Delete(t.Context(), published.ConfigMap,
		metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.book.RemoveNode("n1")
	publish("somebody has deleted it", "update", "create")

	is, err := s.kube.CoreV1().ConfigMaps(Namespace).Get(t.Context(), published.ConfigMap, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	fleet, err := published.FleetOf(is.Data)
	if diff := cmp.Diff(p.book.FleetSummary(), fleet); err != nil || diff != "" {
		t.Errorf("%v (-is +published):\n%s", err, diff)
	}
}
