package controllers

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"

	rqv1 "github.com/davidlangworthy/jobtree/pkg/apis/rq/v1"
	"github.com/davidlangworthy/jobtree/pkg/book"
	"github.com/davidlangworthy/jobtree/pkg/config"
)

// TestNothingMayBeMissing: controllers that lack a client, or anything else that they work with, are not made, and the
// error names what they lack.
func TestNothingMayBeMissing(t *testing.T) {
	args, err := config.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := rqv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, drop := range map[string]func(*Options){
		"":             func(*Options) {},
		"Args":         func(o *Options) { o.Args = nil },
		"Book":         func(o *Options) { o.Book = nil },
		"Kube":         func(o *Options) { o.Kube = nil },
		"Client":       func(o *Options) { o.Client = nil },
		"Shared":       func(o *Options) { o.Shared = nil },
		"EventsClient": func(o *Options) { o.EventsClient = nil },
		"Name":         func(o *Options) { o.Name = "" },
		"Clock":        func(o *Options) { o.Clock = nil },
		"Holds":        func(o *Options) { o.Holds = nil },
	} {
		kube := fake.NewClientset()
		o := Options{Args: args, Book: book.New(args), Kube: kube, EventsClient: kube,
			Client: fakeclient.NewClientBuilder().WithScheme(scheme).Build(),
			Shared: informers.NewSharedInformerFactory(kube, 0), Name: "jobtree",
			Clock: clocktesting.NewFakeClock(noon), Holds: func() bool { return true }}
		drop(&o)
		_, err := New(o)
		switch {
		case name == "" && err != nil:
			t.Errorf("nothing is missing: %v", err)
		case name != "" && (err == nil || err.Error() != "controllers lack "+name):
			t.Errorf("without %s: %v", name, err)
		}
	}
}
